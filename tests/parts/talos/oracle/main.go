// Copyright (c) Ichor contributors
// GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command oracle answers, with Talos's own machinery, what Talos would say: one JSON request a line on standard input, one
// JSON answer a line on standard output. Keys of the requests are those of the rows in tests/vectors.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
)

type mode string

func (m mode) String() string        { return string(m) }
func (m mode) RequiresInstall() bool { return m == "metal" }
func (m mode) InContainer() bool     { return m == "container" }

type request struct {
	Op      string   `json:"op"`
	Config  string   `json:"config"`
	Patches []string `json:"patches"`
	Mode    string   `json:"mode"`
	// Local validates as talosctl does, without what only a node checks: the versions in Kubernetes images.
	Local bool   `json:"local"`
	Input *input `json:"input"`
}

type answer struct {
	Output   string   `json:"output,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
	// Stage says which part refused: load, patch, validate or generate.
	Stage string `json:"stage,omitempty"`
}

func patch(req request) (string, error) {
	patches, err := configpatcher.LoadPatches(req.Patches)
	if err != nil {
		return "", err
	}

	out, err := configpatcher.Apply(configpatcher.WithBytes([]byte(req.Config)), patches)
	if err != nil {
		return "", err
	}

	bytes, err := out.Bytes()

	return string(bytes), err
}

func answerTo(req request) (ans answer) {
	defer func() {
		if r := recover(); r != nil {
			ans = answer{Error: fmt.Sprintf("panic: %v", r), Stage: "panic"}
		}
	}()

	switch req.Op {
	case "generate":
		out, err := generateConfig(req.Input)
		if err != nil {
			return answer{Error: err.Error(), Stage: "generate"}
		}

		return answer{Output: out}
	case "patch":
		out, err := patch(req)
		if err != nil {
			return answer{Error: err.Error(), Stage: "patch"}
		}

		return answer{Output: out}
	case "load", "validate":
		text := req.Config

		if len(req.Patches) > 0 {
			out, err := patch(req)
			if err != nil {
				return answer{Error: err.Error(), Stage: "patch"}
			}

			text = out
		}

		cfg, err := configloader.NewFromBytes([]byte(text))
		if err != nil {
			return answer{Error: err.Error(), Stage: "load"}
		}

		if req.Op == "load" {
			bytes, err := cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
			if err != nil {
				return answer{Error: err.Error(), Stage: "load"}
			}

			return answer{Output: string(bytes)}
		}

		var options []validation.Option

		if req.Local {
			options = append(options, validation.WithLocal())
		}

		warnings, err := cfg.Validate(mode(req.Mode), options...)
		if err != nil {
			return answer{Warnings: warnings, Error: err.Error(), Stage: "validate"}
		}

		return answer{Warnings: warnings}
	}

	return answer{Error: "unknown op " + req.Op, Stage: "request"}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}

	sort.Strings(keys)

	return keys
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)

	for {
		line, err := in.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var req request

			if jsonErr := json.Unmarshal([]byte(line), &req); jsonErr != nil {
				out.Encode(answer{Error: jsonErr.Error(), Stage: "request"}) //nolint:errcheck
			} else if encErr := out.Encode(answerTo(req)); encErr != nil {
				fmt.Fprintln(os.Stderr, encErr)
				os.Exit(1)
			}
		}

		if err != nil {
			return
		}
	}
}
