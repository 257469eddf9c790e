// Copyright (c) Ichor contributors
// GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"errors"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
)

// input has the keys of a row of generate.jsonl; SecretsText is the bundle itself.
type input struct {
	Name        string            `json:"name"`
	Endpoint    string            `json:"endpoint"`
	K8s         string            `json:"k8s"`
	Contract    string            `json:"contract"`
	Image       string            `json:"image"`
	SecretsText string            `json:"secrets_text"`
	Role        string            `json:"role"`
	SANs        []string          `json:"sans"`
	Disk        *string           `json:"disk"`
	Discovery   *bool             `json:"discovery"`
	KubeSpan    bool              `json:"kubespan"`
	Mirrors     map[string]string `json:"mirrors"`
	AllowSched  bool              `json:"allowsched"`
	Sysctls     map[string]string `json:"sysctls"`
	CNIURL      string            `json:"cniurl"`
	DNS         string            `json:"dns"`
	Commented   bool              `json:"commented"`
}

func generateConfig(in *input) (string, error) {
	if in == nil {
		return "", errors.New("no input")
	}

	contract, err := config.ParseContractFromVersion(in.Contract)
	if err != nil {
		return "", err
	}

	options := []generate.Option{generate.WithVersionContract(contract)}

	if in.SecretsText != "" {
		bundle := &secrets.Bundle{Clock: secrets.NewFixedClock(time.Now())}
		if err = yaml.Unmarshal([]byte(in.SecretsText), bundle); err != nil {
			return "", err
		}

		options = append(options, generate.WithSecretsBundle(bundle))
	}

	if in.Image != "" {
		options = append(options, generate.WithInstallImage(in.Image))
	}

	if in.Disk != nil {
		options = append(options, generate.WithInstallDisk(*in.Disk))
	} else {
		options = append(options, generate.WithInstallDisk("/dev/sda"))
	}

	if len(in.SANs) > 0 {
		options = append(options, generate.WithAdditionalSubjectAltNames(in.SANs))
	}

	if in.Discovery != nil {
		options = append(options, generate.WithClusterDiscovery(*in.Discovery))
	}

	for _, host := range sortedKeys(in.Mirrors) {
		options = append(options, generate.WithRegistryMirror(host, strings.Split(in.Mirrors[host], ",")...))
	}

	if in.AllowSched {
		options = append(options, generate.WithAllowSchedulingOnControlPlanes(true))
	}

	if len(in.Sysctls) > 0 {
		options = append(options, generate.WithSysctls(in.Sysctls))
	}

	if in.DNS != "" {
		options = append(options, generate.WithDNSDomain(in.DNS))
	}

	options = append(options, versionOptions(in)...)

	gen, err := generate.NewInput(in.Name, in.Endpoint, in.K8s, options...)
	if err != nil {
		return "", err
	}

	role, err := machine.ParseType(in.Role)
	if err != nil {
		return "", err
	}

	cfg, err := gen.Config(role)
	if err != nil {
		return "", err
	}

	comments := encoder.CommentsDisabled
	if in.Commented {
		comments = encoder.CommentsAll
	}

	bytes, err := cfg.EncodeBytes(encoder.WithComments(comments))

	return string(bytes), err
}
