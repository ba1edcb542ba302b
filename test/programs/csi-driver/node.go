package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	response := &csi.NodeGetInfoResponse{NodeId: d.node}
	if !d.shared {
		response.AccessibleTopology = &csi.Topology{Segments: d.segments()}
	}
	return response, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, capability := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}

func (d *driver) NodeStageVolume(_ context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if req.VolumeId == "" || req.StagingTargetPath == "" || req.VolumeCapability == nil {
		return nil, invalid("a volume, a path and a capability must be named")
	}
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", req.VolumeId)
	}
	if v.Kind == "block" || isMounted(req.StagingTargetPath) {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	data := d.backend.data("volumes", v.ID, v.Kind)
	if err := os.MkdirAll(req.StagingTargetPath, 0o755); err != nil {
		return nil, internal(err)
	}
	if v.Kind == "folder" {
		err = run("mount", "--bind", data, req.StagingTargetPath)
	} else {
		makeLoopNodes()
		// The loop device goes when the mount goes.
		err = run("mount", "-o", "loop", data, req.StagingTargetPath)
	}
	if err != nil {
		return nil, internal(err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

func (d *driver) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if req.VolumeId == "" || req.StagingTargetPath == "" {
		return nil, invalid("a volume and a path must be named")
	}
	if err := unmount(req.StagingTargetPath); err != nil {
		return nil, internal(err)
	}
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil || v.Kind != "block" {
		return &csi.NodeUnstageVolumeResponse{}, nil
	}
	if device, _ := loopOf(d.backend.data("volumes", v.ID, v.Kind)); device != "" {
		if err := run("losetup", "-d", device); err != nil {
			return nil, internal(err)
		}
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.VolumeId == "" || req.TargetPath == "" || req.VolumeCapability == nil {
		return nil, invalid("a volume, a path and a capability must be named")
	}
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", req.VolumeId)
	}
	if isMounted(req.TargetPath) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if isForOnePod(req.VolumeCapability) && d.publishedElsewhere(v, req.TargetPath) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is used by another pod", v.ID)
	}
	source := req.StagingTargetPath
	if v.Kind == "block" {
		source, err = attachLoop(d.backend.data("volumes", v.ID, v.Kind))
		if err == nil {
			err = makeFile(req.TargetPath)
		}
	} else {
		err = os.MkdirAll(req.TargetPath, 0o755)
	}
	if err == nil {
		err = makeFile(d.backend.path("volumes", v.ID, "targets", idOf("target", req.TargetPath)))
	}
	if err == nil {
		err = run("mount", "--bind", source, req.TargetPath)
	}
	if err == nil && req.Readonly && v.Kind != "block" {
		err = run("mount", "-o", "remount,bind,ro", req.TargetPath)
	}
	if err != nil {
		return nil, internal(err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func isForOnePod(capability *csi.VolumeCapability) bool {
	return capability.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
}

// publishedElsewhere tells whether the volume has another target.
func (d *driver) publishedElsewhere(v *volume, target string) bool {
	entries, _ := os.ReadDir(d.backend.path("volumes", v.ID, "targets"))
	for _, entry := range entries {
		if entry.Name() != idOf("target", target) {
			return true
		}
	}
	return false
}

func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

func (d *driver) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.VolumeId == "" || req.TargetPath == "" {
		return nil, invalid("a volume and a path must be named")
	}
	err := unmount(req.TargetPath)
	if err == nil {
		err = os.RemoveAll(req.TargetPath)
	}
	if err != nil {
		return nil, internal(err)
	}
	_ = os.Remove(d.backend.path("volumes", req.VolumeId, "targets", idOf("target", req.TargetPath)))
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (d *driver) NodeGetVolumeStats(_ context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if req.VolumeId == "" || req.VolumePath == "" {
		return nil, invalid("a volume and a path must be named")
	}
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", req.VolumeId)
	}
	if _, err := os.Stat(req.VolumePath); err != nil {
		return nil, status.Errorf(codes.NotFound, "nothing is at %s", req.VolumePath)
	}
	usage := &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: v.Bytes}
	switch v.Kind {
	case "folder":
		// Other files are on the same file system, so the files of the volume are counted.
		output, err := exec.Command("du", "-s", "--block-size=1", d.backend.data("volumes", v.ID, v.Kind)).Output()
		if err != nil {
			return nil, internal(err)
		}
		text, _, _ := strings.Cut(string(output), "\t")
		usage.Used, _ = strconv.ParseInt(text, 10, 64)
	case "image":
		var fs unix.Statfs_t
		if err := unix.Statfs(req.VolumePath, &fs); err != nil {
			return nil, internal(err)
		}
		usage.Total = int64(fs.Blocks) * fs.Bsize
		usage.Used = int64(fs.Blocks-fs.Bfree) * fs.Bsize
	}
	usage.Available = max(0, usage.Total-usage.Used)
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{usage}}, nil
}

func (d *driver) NodeExpandVolume(_ context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if req.VolumeId == "" || req.VolumePath == "" {
		return nil, invalid("a volume and a path must be named")
	}
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", req.VolumeId)
	}
	if _, err := os.Stat(req.VolumePath); err != nil {
		return nil, status.Errorf(codes.NotFound, "nothing is at %s", req.VolumePath)
	}
	if device, _ := loopOf(d.backend.data("volumes", v.ID, v.Kind)); device != "" && v.Kind != "folder" {
		err := run("losetup", "-c", device)
		if err == nil && v.Kind == "image" {
			err = run("resize2fs", device)
		}
		if err != nil {
			return nil, internal(err)
		}
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Bytes}, nil
}

// isMounted also holds for a file on which a device is mounted.
func isMounted(path string) bool {
	return exec.Command("mountpoint", "-q", path).Run() == nil || exec.Command("findmnt", "-n", "-M", path).Run() == nil
}

func unmount(path string) error {
	for isMounted(path) {
		if err := run("umount", path); err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // the kubelet removes its own folders
	}
	return nil
}
