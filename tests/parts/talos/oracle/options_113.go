// Copyright (c) Ichor contributors
// GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

//go:build !talos112 && !talos114

package main

import (
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// versionOptions are the options whose form differs between the versions of the machinery.
func versionOptions(in *input) []generate.Option {
	var options []generate.Option

	if in.CNIURL != "" {
		options = append(options, generate.WithClusterCNIConfig(&v1alpha1.CNIConfig{CNIName: "custom", CNIUrls: []string{in.CNIURL}}))
	}

	if in.KubeSpan {
		options = append(options, generate.WithKubeSpanEnabled(true))
	}

	return options
}
