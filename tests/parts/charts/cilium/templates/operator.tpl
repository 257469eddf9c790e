apiVersion: apps/v1
kind: Deployment
metadata:
  name: cilium-operator
  namespace: {{ .Release.Namespace }}
  labels:
    io.cilium/app: operator
spec:
  replicas: {{ .Values.operator.replicas }}
  selector:
    matchLabels:
      io.cilium/app: operator
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 25%
      maxUnavailable: 50%
  template:
    metadata:
      labels:
        io.cilium/app: operator
      annotations:
        cilium.io/configured: {{ toYaml .Values.debug | sha256sum | trunc 8 | quote }}
    spec:
      containers:
        - name: operator
          image: {{ .Values.image | replace "cilium:" "operator:" | quote }}
          ports:
            - containerPort: 9963
              hostPort: 9963
      hostNetwork: true
      serviceAccountName: cilium
