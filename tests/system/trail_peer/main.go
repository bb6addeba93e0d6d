// SPDX-License-Identifier: Apache-2.0

// Verifies a trail with the implementation of Go's checksum database, which has nothing in common with ours.
//
// Usage: trailpeer KEY FOLDER [OLDER]
// FOLDER has the checkpoint, and each tile as LEVEL-N: hashes, or with level -1 the leaves. OLDER is an older checkpoint.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func check(ok bool, format string, args ...any) {
	if !ok {
		must(fmt.Errorf(format, args...))
	}
}

// tiles reads them from a folder. Its tiles are those of tlog-tiles, with 2^8 hashes.
type tiles struct{ folder string }

func (t tiles) Height() int                                { return 8 }
func (t tiles) SaveTiles(tiles []tlog.Tile, data [][]byte) {}
func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range wanted {
		data, err := os.ReadFile(filepath.Join(t.folder, fmt.Sprintf("%d-%d", tile.L, tile.N)))
		if err != nil {
			return nil, err
		}
		if len(data) < tile.W*tlog.HashSize {
			return nil, fmt.Errorf("tile %v is too short", tile)
		}
		found = append(found, data[:tile.W*tlog.HashSize])
	}
	return found, nil
}

// checkpoint opens the signed note and reads its tree.
func checkpoint(path string, verifier note.Verifier) tlog.Tree {
	text, err := os.ReadFile(path)
	must(err)
	opened, err := note.Open(text, note.VerifierList(verifier))
	must(err)
	lines := strings.Split(opened.Text, "\n")
	check(len(lines) == 4 && strings.HasPrefix(lines[0], verifier.Name()+"/"), "origin %q", lines[0])
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err)
	root, err := base64.StdEncoding.DecodeString(lines[2])
	must(err)
	var hash tlog.Hash
	check(copy(hash[:], root) == tlog.HashSize, "root %q", lines[2])
	return tlog.Tree{N: size, Hash: hash}
}

// leaves reads the bundles.
func leaves(folder string, n int64) [][]byte {
	var found [][]byte
	for bundle := int64(0); int64(len(found)) < n; bundle++ {
		data, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("-1-%d", bundle)))
		must(err)
		for len(data) > 0 {
			length := int(binary.BigEndian.Uint16(data))
			found = append(found, data[2:2+length])
			data = data[2+length:]
		}
	}
	return found
}

func main() {
	verifier, err := note.NewVerifier(os.Args[1])
	must(err)
	folder := os.Args[2]
	tree := checkpoint(filepath.Join(folder, "checkpoint"), verifier)
	// Each hash that is read is checked against the root.
	reader := tlog.TileHashReader(tree, tiles{folder})
	root, err := tlog.TreeHash(tree.N, reader)
	must(err)
	check(root == tree.Hash, "the tiles have another root")
	all := leaves(folder, tree.N)
	check(int64(len(all)) == tree.N, "%d leaves of %d", len(all), tree.N)
	for i := int64(0); i < tree.N; i++ {
		if i > 50 && i < tree.N-50 && i%17 != 0 {
			continue
		}
		proof, err := tlog.ProveRecord(tree.N, i, reader)
		must(err)
		must(tlog.CheckRecord(proof, tree.N, tree.Hash, i, tlog.RecordHash(all[i])))
		check(tlog.CheckRecord(proof, tree.N, tree.Hash, i, tlog.RecordHash([]byte("x"))) != nil, "a false leaf is proved")
	}
	if len(os.Args) > 3 {
		older := checkpoint(os.Args[3], verifier)
		proof, err := tlog.ProveTree(tree.N, older.N, reader)
		must(err)
		must(tlog.CheckTree(proof, tree.N, tree.Hash, older.N, older.Hash))
	}
	// The same over the leaves alone, without our hashes.
	var stored []tlog.Hash
	hashes := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var found []tlog.Hash
		for _, i := range indexes {
			found = append(found, stored[i])
		}
		return found, nil
	})
	for i, leaf := range all {
		more, err := tlog.StoredHashes(int64(i), leaf, hashes)
		must(err)
		stored = append(stored, more...)
	}
	again, err := tlog.TreeHash(tree.N, hashes)
	must(err)
	check(bytes.Equal(again[:], tree.Hash[:]), "the leaves have another root")
	fmt.Printf("%d leaves are proved\n", tree.N)
}
