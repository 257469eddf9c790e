// Copyright (c) Ichor contributors
// GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command restore makes the data directory of a new cluster with one member out of a snapshot, as Talos's recovery does:
//
//	restore SNAPSHOT DATA-DIR NAME PEER-URL [unverified]
//
// The snapshot's hash is checked unless it is a bare database ("unverified").
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v2store"
	"go.etcd.io/etcd/server/v3/etcdserver/cindex"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

const (
	// The log of the new cluster holds one entry: its only member.
	index, term = uint64(1), uint64(1)
	page        = 512
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: restore SNAPSHOT DATA-DIR NAME PEER-URL [unverified]")
		os.Exit(2)
	}
	if err := restore(os.Args[1], os.Args[2], os.Args[3], os.Args[4], len(os.Args) > 5); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// database reads the snapshot and gives what is before its hash.
func database(path string, unverified bool) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil || unverified {
		return content, err
	}
	if len(content)%page != sha256.Size {
		return nil, errors.New("the snapshot has no hash at its end")
	}
	body, hash := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], hash) {
		return nil, errors.New("the snapshot does not have the hash that it ends with")
	}
	return body, nil
}

func restore(path, dir, name, url string, unverified bool) error {
	body, err := database(path, unverified)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(datadir.ToSnapDir(dir), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(datadir.ToBackendFileName(dir), body, 0o600); err != nil {
		return err
	}
	urls, err := types.NewURLsMap(name + "=" + url)
	if err != nil {
		return err
	}
	logger := zap.NewNop()
	cluster, err := membership.NewClusterFromURLsMap(logger, "etcd-cluster", urls)
	if err != nil {
		return err
	}

	store := v2store.New("/0", "/1")
	base := backend.NewDefaultBackend(logger, datadir.ToBackendFileName(dir))
	defer base.Close()
	members := schema.NewMembershipBackend(logger, base)
	if err := members.TrimMembershipFromBackend(); err != nil {
		return err
	}
	cluster.SetStore(store)
	cluster.SetBackend(members)
	member := cluster.MemberByName(name)
	cluster.AddMember(member, true)
	cindex.UpdateConsistentIndexForce(base.BatchTx(), index, term)
	return writeLog(logger, dir, cluster, member, store)
}

func writeLog(logger *zap.Logger, dir string, cluster *membership.RaftCluster, member *membership.Member, store v2store.Store) error {
	metadata, err := (&etcdserverpb.Metadata{NodeID: uint64(member.ID), ClusterID: uint64(cluster.ID())}).Marshal()
	if err != nil {
		return err
	}
	log, err := wal.Create(logger, datadir.ToWALDir(dir), metadata)
	if err != nil {
		return err
	}
	defer log.Close()
	text, err := json.Marshal(member)
	if err != nil {
		return err
	}
	change := raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: uint64(member.ID), Context: text}
	data, err := change.Marshal()
	if err != nil {
		return err
	}
	entry := raftpb.Entry{Type: raftpb.EntryConfChange, Term: term, Index: index, Data: data}
	if err := log.Save(raftpb.HardState{Term: term, Vote: uint64(member.ID), Commit: index}, []raftpb.Entry{entry}); err != nil {
		return err
	}
	content, err := store.Save()
	if err != nil {
		return err
	}
	state := raftpb.ConfState{Voters: []uint64{uint64(member.ID)}}
	saved := raftpb.Snapshot{Data: content, Metadata: raftpb.SnapshotMetadata{Index: index, Term: term, ConfState: state}}
	if err := snap.New(logger, datadir.ToSnapDir(dir)).SaveSnap(saved); err != nil {
		return err
	}
	return log.SaveSnapshot(walpb.Snapshot{Index: index, Term: term, ConfState: &state})
}
