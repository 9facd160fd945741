// What a new experiment may begin with. Each is valid as it stands; a test hands them to a server.

export const EXAMPLES = [
  {
    name: "a program",
    text: `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: my-experiment
spec:
  objective:
    type: minimize
    objectiveMetricName: loss
  parallelTrialCount: 2
  maxTrialCount: 30
  maxFailedTrialCount: 3
  parameters:
    - name: lr
      parameterType: double
      feasibleSpace:
        min: "0.00001"
        max: "0.1"
        distribution: logUniform
    - name: layers
      parameterType: int
      feasibleSpace:
        min: "1"
        max: "6"
    - name: optimizer
      parameterType: categorical
      feasibleSpace:
        list: [adam, sgd]
  trialTemplate:
    primaryContainerName: training
    trialParameters:
      - name: lr
        reference: lr
      - name: layers
        reference: layers
      - name: optimizer
        reference: optimizer
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
              - name: training
                image: training:latest
                command:
                  - python3
                  - train.py
                  - --lr=\${trialParameters.lr}
                  - --layers=\${trialParameters.layers}
                  - --optimizer=\${trialParameters.optimizer}
`,
  },
  {
    name: "trials that you run yourself",
    text: `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: my-experiment
spec:
  objective:
    type: minimize
    objectiveMetricName: loss
  maxTrialCount: 30
  parameters:
    - name: temperature
      parameterType: double
      feasibleSpace:
        min: "20"
        max: "90"
    - name: solvent
      parameterType: categorical
      feasibleSpace:
        list: [water, ethanol, acetone]
  shirabe:
    askAndTell: true
`,
  },
  {
    name: "two objectives and a constraint",
    text: `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: my-experiment
spec:
  objective:
    type: maximize
    objectiveMetricName: accuracy
  maxTrialCount: 60
  parameters:
    - name: layers
      parameterType: int
      feasibleSpace:
        min: "1"
        max: "12"
    - name: width
      parameterType: int
      feasibleSpace:
        min: "16"
        max: "1024"
        distribution: logUniform
  shirabe:
    askAndTell: true
    additionalObjectives:
      - metricName: latency
        type: minimize
    constraints:
      - metricName: memory
        max: 8
`,
  },
  {
    name: "spot machines with a budget",
    text: `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: my-experiment
spec:
  objective:
    type: maximize
    objectiveMetricName: accuracy
  parallelTrialCount: 4
  maxTrialCount: 60
  parameters:
    - name: lr
      parameterType: double
      feasibleSpace:
        min: "0.0001"
        max: "0.1"
        distribution: logUniform
  trialTemplate:
    primaryContainerName: training
    trialParameters:
      - name: lr
        reference: lr
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
              - name: training
                image: training:latest
                command: [python3, train.py, "--lr=\${trialParameters.lr}"]
  shirabe:
    attempts:
      maxPreemptions: 100
      onDemandAfter: 3
      gracePeriodSeconds: 30
    checkpoint:
      intervalSeconds: 600
    budget:
      maxCost: 25
      currency: USD
    capacity:
      spot: preferred
`,
  },
];
