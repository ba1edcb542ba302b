package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// backend is the folder with all volumes and snapshots. Its files are the only state, so several drivers may share it.
type backend struct{ dir string }

type volume struct {
	ID    string
	Name  string
	Bytes int64
	// "folder", "image" or "block".
	Kind string
	// The snapshot or volume from which it was made.
	Source string `json:",omitempty"`
	// How it is attached, by node.
	Attached map[string]attachment `json:",omitempty"`
}

type attachment struct {
	ReadOnly bool
	// No other node may have it.
	Single bool
}

type snapshot struct {
	ID      string
	Name    string
	Volume  string
	Group   string `json:",omitempty"`
	Bytes   int64
	Kind    string
	Created time.Time
}

func (b backend) prepare() error {
	return errors.Join(os.MkdirAll(b.path("volumes"), 0o755), os.MkdirAll(b.path("snapshots"), 0o755))
}

func (b backend) path(parts ...string) string {
	return filepath.Join(append([]string{b.dir}, parts...)...)
}

// lock keeps the other drivers of this backend away until the returned function is called.
func (b backend) lock() (func(), error) {
	file, err := os.OpenFile(b.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// idOf is the same for every call with a name, which makes creation idempotent.
func idOf(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

func load[T any](b backend, folder, id string) (*T, error) {
	if id == "" || strings.ContainsAny(id, "/.") {
		return nil, fs.ErrNotExist
	}
	text, err := os.ReadFile(b.path(folder, id, "record.json"))
	if err != nil {
		return nil, err
	}
	record := new(T)
	return record, json.Unmarshal(text, record)
}

func all[T any](b backend, folder string) ([]*T, error) {
	entries, err := os.ReadDir(b.path(folder))
	if err != nil {
		return nil, err
	}
	var records []*T
	for _, entry := range entries {
		record, err := load[T](b, folder, entry.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // still being made
		}
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// save writes the record last, by a rename: whatever has no record does not exist.
func save(b backend, folder, id string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	file := b.path(folder, id, "record.json")
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// data is the folder or file with the contents.
func (b backend) data(folder, id, kind string) string {
	if kind == "folder" {
		return b.path(folder, id, "data")
	}
	return b.path(folder, id, "image")
}

// make creates the contents: a copy of `from`, or empty.
func (b backend) make(v *volume, from string) error {
	dir := b.path("volumes", v.ID)
	// What a driver left that was killed meanwhile.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	target := b.data("volumes", v.ID, v.Kind)
	if from != "" {
		if err := copyContents(from, target, v.Kind); err != nil {
			return err
		}
		return b.grow(v, v.Bytes)
	}
	if v.Kind == "folder" {
		if err := os.Mkdir(target, 0o777); err != nil {
			return err
		}
		return os.Chmod(target, 0o777)
	}
	if err := b.grow(v, v.Bytes); err != nil || v.Kind == "block" {
		return err
	}
	return run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "root_owner=0:0", target)
}

// grow gives the file behind a volume its size; the node then tells the loop device and the file system.
func (b backend) grow(v *volume, bytes int64) error {
	if v.Kind == "folder" {
		return nil
	}
	file, err := os.OpenFile(b.data("volumes", v.ID, v.Kind), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() >= bytes {
		return err
	}
	return file.Truncate(bytes)
}

// copyContents copies with hard links, extended attributes, holes and special files.
func copyContents(from, to, kind string) error {
	if kind == "folder" {
		return run("cp", "-a", "--reflink=auto", "--sparse=always", from, to)
	}
	thaw := freeze(from)
	defer thaw()
	return run("cp", "--reflink=auto", "--sparse=always", from, to)
}

// freeze stops writes to a mounted image, so that its file is consistent, until the returned function is called.
func freeze(image string) func() {
	device, _ := loopOf(image)
	if device == "" {
		return func() {}
	}
	_ = run("sync")
	mounted, err := exec.Command("findmnt", "-n", "-f", "-o", "TARGET", "--source", device).Output()
	point := strings.TrimSpace(string(mounted))
	if err != nil || point == "" || run("fsfreeze", "-f", point) != nil {
		return func() {}
	}
	return func() { _ = run("fsfreeze", "-u", point) }
}

// loopOf is the loop device of a file, or "".
func loopOf(file string) (string, error) {
	output, err := exec.Command("losetup", "-j", file).Output()
	if err != nil {
		return "", err
	}
	device, _, _ := strings.Cut(string(output), ":")
	return device, nil
}

// attachLoop gives a file its loop device, once.
func attachLoop(file string) (string, error) {
	if device, err := loopOf(file); err != nil || device != "" {
		return device, err
	}
	makeLoopNodes()
	output, err := exec.Command("losetup", "-f", "--show", file).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("losetup: %s", output)
	}
	return strings.TrimSpace(string(output)), nil
}

// makeLoopNodes makes the device files that a static /dev lacks.
func makeLoopNodes() {
	for i := range 64 {
		path := fmt.Sprintf("/dev/loop%d", i)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			_ = unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(7, uint32(i))))
		}
	}
}

func run(name string, args ...string) error {
	output, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
