apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: cilium-operator
  namespace: {{ .Release.Namespace }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      io.cilium/app: operator
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata:
  name: cilium
spec:
  controller: cilium.io/ingress-controller
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: cilium
webhooks:
  - name: policy.cilium.io
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    clientConfig:
      service:
        name: cilium-webhook
        namespace: {{ .Release.Namespace }}
    rules:
      - apiGroups: [cilium.io]
        apiVersions: ["*"]
        operations: [CREATE]
        resources: [ciliumnetworkpolicies]
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: hubble-generate-certs
  namespace: {{ .Release.Namespace }}
spec:
  schedule: "0 0 1 */4 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
            - name: certgen
              image: example.org/cilium/certgen:v0.2.0
---
apiVersion: batch/v1
kind: Job
metadata:
  name: cilium-preflight
  namespace: {{ .Release.Namespace }}
  annotations:
    helm.sh/hook: pre-install
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: preflight
          image: example.org/cilium/cilium:v1.18.0
