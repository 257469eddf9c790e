// Marks the root of the module: go wants this file there whichever go-VERSION.mod it is told to use.
module ichor.maesh.dev/talos/tests/parts/talos

go 1.26.0
