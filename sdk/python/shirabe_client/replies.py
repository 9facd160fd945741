"""What a server answers, as JSON: what `trial.raw`, `attempts()`, `events()` and others
hold. Made from /openapi.json by make_replies.py. What is not NotRequired is always there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired


class ActorView(TypedDict):
    name: str  # who, as the server knows the caller
    door: str  # command line, grpc, http, katib or kubernetes


class AdditionalObjective(TypedDict):
    metricName: str  # a metric of the trials
    type: Literal["minimize", "maximize"]  # minimize or maximize
    goal: NotRequired[float]
    reference: NotRequired[float]


class Asked(TypedDict):
    trial: NotRequired[Trial]  # the caller's trial; absent: see reason
    parameters: NotRequired[Dict[str, Any]]  # its point, as numbers and text
    attempt: NotRequired[int]  # number of its attempt
    token: NotRequired[str]  # of that attempt, for tell
    reason: NotRequired[str]  # why there is no trial
    ended: bool  # there will never be another


class Attempt(TypedDict):
    apiVersion: Literal["shirabe/v1"]  # ours
    kind: Literal["Attempt"]  # ours
    metadata: Metadata  # name, namespace, labels
    trial: str  # name of its trial
    number: int  # from 1
    node: Optional[str]  # where it ran
    capacity: Optional[Literal["spot", "on-demand"]]  # of that node
    start: Optional[str]  # when it started
    end: Optional[str]  # when it ended
    exitCode: Optional[int]  # as a shell shows it
    cause: Optional[Literal["completed", "early-stopped", "yielded", "preempted-scheduler",
        "preempted-eviction", "preempted-node", "preempted-spot", "suspended", "never-ran",
        "infrastructure", "oom", "app-error", "user", "experiment-ended", "unknown"]]
    resumedFromStep: int  # 0 = from the beginning
    stepsGained: int  # beyond earlier attempts
    stepsRedone: int  # that were lost before
    seconds: float  # that it ran
    cost: float  # of those
    status: AttemptStatus  # all the rest


class AttemptStatus(TypedDict):
    state: Literal["created", "running", "closed"]  # how far it is
    cause: NotRequired[Literal["completed", "early-stopped", "yielded", "preempted-scheduler",
        "preempted-eviction", "preempted-node", "preempted-spot", "suspended", "never-ran",
        "infrastructure", "oom", "app-error", "user", "experiment-ended", "unknown"]]
    exitCode: NotRequired[int]  # of the program, if it exited
    signal: NotRequired[int]  # that ended the program
    message: NotRequired[str]  # of its end, for people
    startTime: NotRequired[str]  # when it started
    endTime: NotRequired[str]  # when it ended
    resumedFromStep: int  # 0 = from the beginning
    stepsGained: int  # beyond earlier attempts
    stepsRedone: int  # that were lost before
    resumedFrom: NotRequired[str]  # name of the attempt that saved its checkpoint
    wastedSeconds: NotRequired[float]  # after its last checkpoint
    observations: int  # metric values that it reported
    badMetricLines: NotRequired[int]  # lines that could not be read
    placements: List[Placement]  # where it ran
    log: NotRequired[str]  # where its log lies


class Candidate(TypedDict):
    parameterAssignments: List[TextAssignment]  # the point
    explanation: NotRequired[str]  # why this point


class Candidates(TypedDict):
    items: List[Candidate]  # what would be tried next
    reason: NotRequired[str]  # why there are fewer than asked for


class Change(TypedDict):
    kind: Literal["experiment", "trial", "attempt", "deleted"]
    namespace: str  # namespace
    experiment: str  # name of the experiment
    trial: NotRequired[str]  # name of the trial
    revision: int  # of the change; resume after it


class Checkpoint(TypedDict):
    trial: str  # name of its trial
    attempt: int  # number of the attempt that saved it
    step: int  # the step at which it was saved
    bytes: int  # size
    digest: str  # SHA-256 of its manifest
    time: NotRequired[str]  # when it was saved
    objective: NotRequired[Union[float, str]]  # at this step, or before it
    location: NotRequired[str]  # where it lies
    gone: NotRequired[str]  # why it is no longer there


class ConstraintResult(TypedDict):
    metricName: str  # the metric
    min: NotRequired[Union[float, str]]  # the least value that keeps it
    max: NotRequired[Union[float, str]]  # the greatest value that keeps it
    value: NotRequired[Union[float, str]]  # none where it was not reported
    brokenBy: NotRequired[Union[float, str]]


class ErrorDetail(TypedDict):
    field: str  # the field, parameter or header
    reason: str  # what is wrong with it
    line: NotRequired[int]  # where it stands in the body, from 1
    column: NotRequired[int]  # where it stands in the line, from 1


class Event(TypedDict):
    apiVersion: Literal["shirabe/v1"]  # ours
    kind: Literal["Event"]  # ours
    type: Literal["Normal", "Warning"]  # whether it needs attention
    reason: str  # one word
    message: str  # for people
    namespace: str  # namespace
    experiment: str  # name of the experiment
    trial: NotRequired[str]  # name of the trial
    attempt: NotRequired[int]  # number of the attempt
    time: NotRequired[str]  # when it happened
    actor: NotRequired[ActorView]  # who caused it; absent: Shirabe itself


class Finding(TypedDict):
    level: Literal["error", "warning"]  # only errors are refused
    field: str  # path of the field
    message: str  # what is wrong, and how to mend it
    line: NotRequired[int]  # from 1
    column: NotRequired[int]  # from 1


class FrontTrial(TypedDict):
    trialName: NotRequired[str]
    parameterAssignments: NotRequired[List[TextAssignment]]
    values: NotRequired[List[float]]


class LogPiece(TypedDict):
    text: str  # whole lines
    next: int  # offset of the byte after it


class Metadata(TypedDict):
    name: str  # name
    namespace: str  # namespace
    labels: NotRequired[Dict[str, str]]  # labels
    creationTimestamp: NotRequired[str]  # when it was created


class MetricStrategy(TypedDict):
    name: str  # name of the metric
    value: Literal["min", "max", "latest"]  # min, max or latest


class ObjectiveResult(TypedDict):
    metricName: str  # the metric
    type: Literal["minimize", "maximize"]  # minimize or maximize
    value: NotRequired[Union[float, str]]  # none where it was not reported


class ObjectiveSpec(TypedDict):
    type: Literal["minimize", "maximize"]  # minimize or maximize
    goal: NotRequired[float]  # the experiment ends when a trial reaches it
    objectiveMetricName: str  # the metric to optimise
    additionalMetricNames: NotRequired[List[str]]  # other metrics to record
    metricStrategies: NotRequired[List[MetricStrategy]]


class ObservationView(TypedDict):
    trial: str  # name of the trial
    attempt: int  # number of the attempt
    metric: str  # name of the metric
    step: int  # step
    value: Union[float, str]  # what was measured
    time: NotRequired[str]  # when it was measured
    implicitStep: NotRequired[bool]  # the step was counted, not reported
    superseded: NotRequired[bool]  # run again by a later attempt: it does not count


class Placement(TypedDict):
    node: NotRequired[str]  # node, or host
    pool: NotRequired[str]  # pool of nodes
    capacity: NotRequired[Literal["spot", "on-demand"]]  # of that node
    pricePerHour: NotRequired[float]  # of what it took of the node
    onDemandPricePerHour: NotRequired[float]  # of the same, on demand
    pid: NotRequired[int]  # of its supervisor, where it is a process
    devices: NotRequired[str]  # GPUs given to it
    startTime: NotRequired[str]  # from when
    endTime: NotRequired[str]  # until when


class ResultConstraint(TypedDict):
    metricName: str  # a metric of the trials
    min: NotRequired[float]  # the least value that keeps it
    max: NotRequired[float]  # the greatest value that keeps it
    stopEarly: NotRequired[bool]


class ResultFront(TypedDict):
    size: NotRequired[int]
    trials: NotRequired[List[FrontTrial]]
    reference: NotRequired[List[float]]
    hypervolume: NotRequired[float]


class TextAssignment(TypedDict):
    name: str  # the parameter
    value: str  # its value, as the program gets it


class Told(TypedDict):
    stop: NotRequired[str]  # why the trial should end now; absent: it may go on
    next: NotRequired[Asked]
    ignored: NotRequired[bool]  # the trial was stopped before: of what was told nothing counts


class Trial(TypedDict):
    apiVersion: Literal["kubeflow.org/v1beta1"]  # Katib's
    kind: Literal["Trial"]  # Katib's
    metadata: Metadata  # name, namespace, labels
    spec: TrialSpec  # what is tried
    status: TrialStatus  # what has happened


class TrialCondition(TypedDict):
    type: str  # Created, Running, Succeeded, …
    status: str  # True or False
    reason: str  # one word
    message: str  # for people
    lastUpdateTime: NotRequired[str]  # when it was set
    lastTransitionTime: NotRequired[str]  # when it changed


class TrialExtras(TypedDict):
    number: int  # from 1, in the order of creation
    phase: Literal["Pending", "Running", "Succeeded", "Killed", "Failed", "MetricsUnavailable",
        "EarlyStopped"]
    objective: NotRequired[Union[float, str]]  # the value that counts so far
    step: NotRequired[int]  # of that value
    lastStep: NotRequired[int]  # greatest step observed
    attempts: NotRequired[int]  # executions so far
    failures: NotRequired[int]  # attempts that the program failed
    preemptions: NotRequired[int]  # attempts lost to the platform
    infeasible: NotRequired[bool]  # it ran, and gave no usable objective
    parent: NotRequired[TrialParent]  # the trial whose checkpoint it started from
    seconds: NotRequired[float]  # of its closed attempts
    cost: NotRequired[float]  # of its closed attempts
    wastedSeconds: NotRequired[float]  # lost, after the last checkpoint
    wastedCost: NotRequired[float]  # of the lost seconds
    onDemandCost: NotRequired[float]  # of the same seconds, on demand
    explanation: NotRequired[str]  # why the algorithm chose this point
    waiting: NotRequired[str]  # why it is not running
    notBefore: NotRequired[str]  # the next attempt waits until then
    objectives: NotRequired[List[ObjectiveResult]]
    constraints: NotRequired[List[ConstraintResult]]  # what became of each constraint so far
    note: NotRequired[str]  # of people, in a subset of Markdown
    tags: NotRequired[List[str]]  # of people
    outputs: NotRequired[TrialOutputs]  # the copy of its outputs that is in a store


class TrialMetric(TypedDict):
    name: str  # the metric
    min: str  # a number as text, or unavailable
    max: str  # a number as text, or unavailable
    latest: str  # a number as text, or unavailable


class TrialObservation(TypedDict):
    metrics: List[TrialMetric]  # one entry a metric


class TrialOutputs(TypedDict):
    attempt: int  # number of the attempt that succeeded
    bytes: int  # size
    digest: str  # SHA-256 of its manifest
    time: NotRequired[str]  # when it was copied
    location: NotRequired[str]  # where it lies


class TrialParent(TypedDict):
    trial: int  # its number
    step: int  # the checkpoint's step


class TrialSpec(TypedDict):
    objective: ObjectiveSpec  # of the experiment
    parameterAssignments: List[TextAssignment]  # the point, in the order of the parameters


class TrialStatus(TypedDict):
    startTime: NotRequired[str]  # of its first attempt
    completionTime: NotRequired[str]  # when it ended
    conditions: List[TrialCondition]  # Katib's conditions
    observation: NotRequired[TrialObservation]  # what its metrics come to
    shirabe: TrialExtras  # what Katib has not


class Variant(TypedDict):
    kind: Literal["algorithm", "stopper"]  # what it is one of
    name: str  # name
    aliases: List[str]  # other names
    help: str  # what it is, when to use it
    settings: List[VariantSetting]  # what it can be told


class VariantSetting(TypedDict):
    name: str  # name
    type: Literal["int", "double", "bool", "text"]  # of its values
    values: str  # what is allowed, in words
    default: str  # empty if there is none
    help: str  # what it does
    min: NotRequired[float]  # least value
    max: NotRequired[float]  # greatest value
    words: NotRequired[List[str]]  # the values allowed
