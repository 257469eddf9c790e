// Copyright (c) Ichor contributors
// GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command client makes a few calls to a node with the client that talosctl is made of, and prints the answers as JSON.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/crypto/x509"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

func fail(err error) {
	json.NewEncoder(os.Stdout).Encode(map[string]string{ //nolint:errcheck
		"error": err.Error(), "code": status.Code(err).String(),
	})
	os.Exit(1)
}

func options(endpoint, fingerprint, talosconfig string) ([]client.OptionFunc, error) {
	if talosconfig != "" {
		cfg, err := clientconfig.Open(talosconfig)
		if err != nil {
			return nil, err
		}

		return []client.OptionFunc{client.WithConfig(cfg), client.WithEndpoints(endpoint)}, nil
	}

	tlsConfig := &tls.Config{InsecureSkipVerify: true} //nolint:gosec

	if fingerprint != "" {
		pin, err := x509.ParseFingerprint(fingerprint)
		if err != nil {
			return nil, err
		}

		tlsConfig.VerifyConnection = x509.MatchSPKIFingerprints(pin)
	}

	return []client.OptionFunc{client.WithTLSConfig(tlsConfig), client.WithEndpoints(endpoint)}, nil
}

func main() {
	endpoint := flag.String("endpoint", "", "address and port of the node")
	fingerprint := flag.String("fingerprint", "", "insecure, with this pin")
	talosconfig := flag.String("talosconfig", "", "authenticated, with this file")
	call := flag.String("call", "version", "version, identity, disks, links, stage, apply or bootstrap")
	file := flag.String("file", "", "configuration to apply")
	timeout := flag.Duration("timeout", 10*time.Second, "deadline of the whole run")
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()

	opts, err := options(*endpoint, *fingerprint, *talosconfig)
	if err != nil {
		fail(err)
	}

	c, err := client.New(ctx, opts...)
	if err != nil {
		fail(err)
	}

	defer c.Close() //nolint:errcheck

	answer, err := run(ctx, c, *call, *file)
	if err != nil {
		fail(err)
	}

	json.NewEncoder(os.Stdout).Encode(answer) //nolint:errcheck
}

func run(ctx context.Context, c *client.Client, call, file string) (any, error) {
	switch call {
	case "version":
		resp, err := c.Version(ctx)
		if err != nil {
			return nil, err
		}

		return map[string]any{"tag": resp.Messages[0].Version.Tag, "features": resp.Messages[0].Features != nil}, nil
	case "identity":
		info, err := safe.StateGetByID[*hardware.SystemInformation](ctx, c.COSI, hardware.SystemInformationID)
		if err != nil {
			return nil, err
		}

		return info.TypedSpec(), nil
	case "disks":
		list, err := safe.StateListAll[*block.Disk](ctx, c.COSI)
		if err != nil {
			return nil, err
		}

		disks := map[string]any{}
		for disk := range list.All() {
			disks[disk.Metadata().ID()] = disk.TypedSpec()
		}

		return disks, nil
	case "links":
		list, err := safe.StateListAll[*network.LinkStatus](ctx, c.COSI)
		if err != nil {
			return nil, err
		}

		links := map[string]any{}
		for link := range list.All() {
			links[link.Metadata().ID()] = link.TypedSpec()
		}

		return links, nil
	case "stage":
		machineStatus, err := safe.StateGetByID[*runtime.MachineStatus](ctx, c.COSI, runtime.MachineStatusID)
		if err != nil {
			return nil, err
		}

		return map[string]any{
			"stage": machineStatus.TypedSpec().Stage.String(), "ready": machineStatus.TypedSpec().Status.Ready,
		}, nil
	case "apply":
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}

		resp, err := c.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{
			Data: data, Mode: machineapi.ApplyConfigurationRequest_AUTO, TryModeTimeout: durationpb.New(time.Minute),
		})
		if err != nil {
			return nil, err
		}

		return map[string]any{"mode": resp.Messages[0].Mode.String(), "details": resp.Messages[0].ModeDetails}, nil
	case "bootstrap":
		return map[string]any{}, c.Bootstrap(ctx, &machineapi.BootstrapRequest{})
	}

	return nil, fmt.Errorf("unknown call %q", call)
}
