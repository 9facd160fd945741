// The records as the server prints them (/openapi.json), as far as the pages read them.

export interface Assignment {
  name: string;
  value: string;
}

export interface Parameter {
  name: string;
  parameterType: "double" | "int" | "discrete" | "categorical";
  feasibleSpace: {
    min?: string;
    max?: string;
    step?: string;
    list?: string[];
    distribution?: string;
  };
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastTransitionTime?: string;
}

export interface AdditionalObjective {
  metricName: string;
  type: "minimize" | "maximize";
  goal?: number;
  reference?: number;
}

export interface ResultConstraint {
  metricName: string;
  min?: number;
  max?: number;
}

export interface Experiment {
  metadata: {
    name: string;
    namespace: string;
    uid?: string;
    creationTimestamp?: string;
    generation?: number;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec: {
    parameters?: Parameter[];
    objective: {
      type: "minimize" | "maximize";
      goal?: number;
      objectiveMetricName: string;
      additionalMetricNames?: string[];
      metricStrategies?: { name: string; value: "min" | "max" | "latest" }[];
    };
    algorithm?: { algorithmName?: string; algorithmSettings?: { name: string; value: string }[] };
    earlyStopping?: {
      algorithmName: string;
      algorithmSettings?: { name: string; value: string }[];
    };
    parallelTrialCount?: number;
    maxTrialCount?: number;
    maxFailedTrialCount?: number;
    trialTemplate?: unknown;
    shirabe?: {
      budget?: { maxCost?: number; currency?: string };
      checkpoint?: { intervalSeconds?: number };
      capacity?: { spot?: string; pools?: string[] };
      askAndTell?: boolean;
      space?: SpaceRules;
      additionalObjectives?: AdditionalObjective[];
      constraints?: ResultConstraint[];
      objectiveReference?: number;
      onSuccess?: unknown;
    };
  };
  status?: {
    conditions?: Condition[];
    currentOptimalTrial?: {
      bestTrialName: string;
      parameterAssignments: Assignment[];
      observation: { metrics: Metric[] };
    };
    startTime?: string;
    completionTime?: string;
    trials?: number;
    trialsSucceeded?: number;
    trialsFailed?: number;
    trialsKilled?: number;
    trialsPending?: number;
    trialsRunning?: number;
    trialsEarlyStopped?: number;
    trialMetricsUnavailable?: number;
    shirabe?: ExperimentExtras;
  };
}

export type ValueRule = string | number | (string | number)[] | { in: (string | number)[] } |
  { min?: number; max?: number };

export interface SpaceRules {
  conditions?: { parameter: string; when: Record<string, ValueRule> }[];
  forbidden?: Record<string, ValueRule>[];
  linear?: LinearConstraint[];
}

export interface LinearConstraint {
  sum: Record<string, number | string>; // parameters with their factors
  min?: number;
  max?: number;
}

export interface Annotated {
  note?: string;
  tags?: string[];
}

export interface ExperimentExtras extends Annotated {
  cost?: number;
  seconds?: number;
  wastedSeconds?: number;
  wastedCost?: number;
  onDemandCost?: number;
  preemptions?: number;
  waiting?: string;
  paused?: boolean;
  stopping?: boolean;
  holder?: string;
  createdBy?: { name: string; door: string; time?: string };
  stopRule?: { rule: string; message: string };
  front?: Front;
  onSuccess?: FollowUpStatus;
  [key: string]: unknown;
}

// What became of spec.shirabe.onSuccess; there once the experiment has succeeded.
export interface FollowUpStatus {
  phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Skipped";
  bestTrialName?: string;
  objective?: number | string;
  attempts?: number;
  failures?: number;
  preemptions?: number;
  message?: string;
  waiting?: string;
  startTime?: string;
  completionTime?: string;
  notBefore?: string;
  resumedFromStep?: number | string;
  cost?: number;
}

// Of several objectives; its first 100 trials: those that reach all goals, then by the first.
export interface Front {
  size?: number;
  trials?: FrontTrial[];
  reference?: (number | string)[]; // one an objective, from where the hypervolume is measured
  hypervolume?: number;
}

export interface FrontTrial {
  trialName: string;
  parameterAssignments?: Assignment[]; // of long ones only the first trials have them
  values: (number | string)[]; // of the objectives, in the order of the specification
}

export interface Metric {
  name: string;
  min: string;
  max: string;
  latest: string;
}

export interface Trial {
  metadata: { name: string; namespace: string; creationTimestamp?: string };
  spec: { parameterAssignments: Assignment[] };
  status: {
    startTime?: string;
    completionTime?: string;
    conditions: Condition[];
    observation?: { metrics: Metric[] };
    shirabe: Annotated & {
      number: number;
      phase: string;
      objective?: number | string;
      step?: number;
      lastStep?: number;
      attempts?: number;
      failures?: number;
      preemptions?: number;
      infeasible?: boolean;
      parent?: { trial: number; step: number };
      seconds?: number;
      cost?: number;
      wastedSeconds?: number;
      wastedCost?: number;
      onDemandCost?: number;
      explanation?: string;
      waiting?: string;
      notBefore?: string;
      objectives?: {
        metricName: string;
        type: "minimize" | "maximize";
        value?: number | string;
      }[];
      constraints?: {
        metricName: string;
        min?: number | string;
        max?: number | string;
        value?: number | string;
        brokenBy?: number | string;
      }[];
    };
  };
}

export interface Placement {
  node?: string;
  pool?: string;
  capacity?: string;
  pricePerHour?: number;
  onDemandPricePerHour?: number;
  devices?: string;
  startTime?: string;
  endTime?: string;
}

export interface Attempt {
  metadata: { name: string; namespace: string; creationTimestamp?: string };
  trial: string;
  number: number;
  node: string | null;
  capacity: string | null;
  start: string | null;
  end: string | null;
  exitCode: number | null;
  cause: string | null;
  resumedFromStep: number;
  stepsGained: number;
  stepsRedone: number;
  seconds: number | null;
  cost: number | null;
  status: {
    state: string;
    signal?: number;
    message?: string;
    wastedSeconds?: number;
    observations: number;
    placements: Placement[];
    log?: string;
  };
}

export interface Checkpoint {
  trial: string;
  attempt: number;
  step: number;
  bytes: number;
  digest: string;
  time?: string;
  objective?: number | string;
  location?: string;
  gone?: string;
}

export interface Event {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  experiment: string;
  trial?: string;
  attempt?: number;
  time?: string;
  actor?: { name: string; door: string };
}

export interface Observation {
  trial: string;
  attempt: number;
  metric: string;
  step: number;
  value: number | string;
  time?: string;
  superseded?: boolean;
}

export interface Candidate {
  parameterAssignments: Assignment[];
  explanation?: string;
}

export interface Finding {
  level: "error" | "warning";
  field: string;
  message: string;
  line?: number;
  column?: number;
}

export interface Rights {
  name: string;
  namespace: string;
  read: boolean;
  create: boolean;
  change: boolean;
  delete: boolean;
}

// A number as the server prints it: NaN and the infinities are texts.
export function numberOf(value: number | string | null | undefined): number {
  if (typeof value === "number") return value;
  if (value === null || value === undefined || value === "") return NaN;
  if (value === "Infinity" || value === "+Inf" || value === "Inf") return Infinity;
  if (value === "-Infinity" || value === "-Inf") return -Infinity;
  return Number(value);
}
