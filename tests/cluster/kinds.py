"""Makes an Experiment, as JSON on the standard input, one whose trials are objects of Kubeflow's
operators, with an image that the cluster of a test has: kinds.py pytorch|tensorflow|trainjob
"""

import json
import sys

SCRIPT = """
echo "this is $HOSTNAME, of $WORLD_SIZE, with ${trialParameters.hidden} units"
sleep 10
echo "loss=${trialParameters.learningRate}"
"""


def pytorch(experiment: dict) -> None:
    """deploy/examples/kubernetes/pytorchjob.yaml with two pods a trial, in a hurry."""
    experiment["spec"]["maxTrialCount"] = 2
    roles = experiment["spec"]["trialTemplate"]["trialSpec"]["spec"]["pytorchReplicaSpecs"]
    roles["Worker"]["replicas"] = 1
    for role in roles.values():
        [container] = role["template"]["spec"]["containers"]
        container.update(image="localhost/tiny:1", command=["sh", "-c", SCRIPT])


def tensorflow(experiment: dict) -> None:
    """A Job's pod template, as it is, as the only worker of a TFJob."""
    template = experiment["spec"]["trialTemplate"]
    pod = template["trialSpec"]["spec"]["template"]
    pod["spec"]["containers"][0]["name"] = "tensorflow"
    worker = {"replicas": 1, "restartPolicy": pod["spec"].pop("restartPolicy"), "template": pod}
    template.update(
        primaryContainerName="tensorflow",
        successCondition='status.conditions.#(type=="Succeeded")#|#(status=="True")#',
        failureCondition='status.conditions.#(type=="Failed")#|#(status=="True")#',
        trialSpec={"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
                   "spec": {"tfReplicaSpecs": {"Worker": worker}}})


def trainjob(experiment: dict) -> None:
    """deploy/examples/kubernetes/trainjob.yaml with three trials, in a hurry."""
    experiment["spec"]["maxTrialCount"] = 3
    trainer = experiment["spec"]["trialTemplate"]["trialSpec"]["spec"]["trainer"]
    script = SCRIPT.replace("$WORLD_SIZE", "$PET_NNODES as $SHIRABE_TRIAL")
    trainer.update(image="localhost/tiny:1", command=["sh", "-c", script])


def main() -> None:
    experiment = json.load(sys.stdin)
    {"pytorch": pytorch, "tensorflow": tensorflow, "trainjob": trainjob}[sys.argv[1]](experiment)
    json.dump(experiment, sys.stdout)


main()
