# shellcheck shell=bash
# Experiments that the tests of faults put through them; sourced after installing.sh.

# manifest NAME [NAMESPACE]: two trials at a time, three in all, of fifteen steps of a second, each
# of which is saved; the program goes on from the newest, and does not end while the experiment is
# held. Five seconds to stop in.
manifest() {
  mkdir -p "$CLUSTER/held"
  sed "s/NAME/$1/; s/SPACE/${2:-default}/; s#FOLDER#$CLUSTER/checkpoints#; s#HELD#$CLUSTER/held#" \
    <<'END'
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: NAME, namespace: SPACE}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  maxTrialCount: 3
  maxFailedTrialCount: 0
  shirabe:
    attempts: {gracePeriodSeconds: 5}
    checkpoint: {volume: {hostPath: FOLDER}}
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "-1", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            volumes: [{name: held, hostPath: {path: HELD}}]
            containers:
              - name: main
                image: localhost/tiny:1
                volumeMounts: [{name: held, mountPath: /held, readOnly: true}]
                args: ["--x=${trialParameters.x}"]
                command:
                  - sh
                  - -c
                  - |
                    step=0
                    [ -z "$SHIRABE_RESUME_FROM" ] || step=$(cat "$SHIRABE_RESUME_FROM/step")
                    trap 'exit 75' TERM
                    while [ "$step" -lt 15 ] || [ -e /held/NAME ]; do
                      sleep 1
                      step=$((step + 1))
                      echo "{\"step\": $step, \"metrics\": {\"loss\": $((100 - step))}}" \
                        >>"$SHIRABE_METRICS_FILE"
                      mkdir "$SHIRABE_CHECKPOINT_DIR/$step.tmp"
                      echo "$step" >"$SHIRABE_CHECKPOINT_DIR/$step.tmp/step"
                      mv "$SHIRABE_CHECKPOINT_DIR/$step.tmp" "$SHIRABE_CHECKPOINT_DIR/$step"
                    done
                  - program
END
}

experiment() { manifest "$@" | kubectl apply -f - >/dev/null; }

# pods_of NAME [NAMESPACE]
pods_of() {
  kubectl get pods -n "${2:-default}" -l "katib.kubeflow.org/experiment=$1" -o name \
    --field-selector=status.phase=Running
}

# One of them. All of the list is read: kubectl, told to stop in the middle of it, would fail.
one_pod_of() { pods_of "$1" | sed -n 1p; }

# hold NAME, let_end NAME: what is to be done to a trial that runs must not find it ended, however
# busy the machine is.
hold() { mkdir -p "$CLUSTER/held" && touch "$CLUSTER/held/$1"; }
let_end() { rm -f "$CLUSTER/held/$1"; }

# begun NAME [NAMESPACE]: runs it until its trials are on their way, and holds them.
begun() {
  hold "$1"
  experiment "$@"
  on_its_way "$@"
}

on_its_way() {
  eventually 60 "two running trials of $1" is 2 bash -c \
    "$HERE/cluster.sh exec $CLUSTER kubectl get pods -n ${2:-default} \
      -l katib.kubeflow.org/experiment=$1 --field-selector=status.phase=Running -o name | wc -l"
  eventually 30 "a checkpoint of $1" compgen -G \
    "$CLUSTER/checkpoints/trials/${2:-default}/$1/*/*/checkpoints/[0-9]*"
}

# record WHAT NAME: what the controller, which may be about to come back, has of an experiment.
record() { inside_controller get "$1" "$2" -o json >"$CLUSTER/$2-$1.json"; }

# ended_well NAME CAUSE…
ended_well() {
  local name=$1 what
  shift
  let_end "$name"
  eventually 240 "the success of $name" is True condition "$name" Succeeded
  for what in attempts trials; do
    eventually 30 "the $what of $name" record $what "$name"
  done
  python3 "$HERE/ledger.py" "$CLUSTER/$name-attempts.json" "$CLUSTER/$name-trials.json" 3 "$@"
}
