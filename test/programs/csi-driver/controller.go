package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sort"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const defaultBytes = 1 << 26

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}

func (d *driver) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if req.Name == "" || len(req.VolumeCapabilities) == 0 {
		return nil, invalid("a volume needs a name and capabilities")
	}
	kind, err := kindOf(req)
	if err != nil {
		return nil, err
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	bytes, most := req.CapacityRange.GetRequiredBytes(), req.CapacityRange.GetLimitBytes()
	if bytes == 0 {
		bytes = max(defaultBytes, most)
	}
	id := idOf("vol", req.Name)
	if known, err := load[volume](d.backend, "volumes", id); err == nil {
		if known.Bytes < bytes || (most > 0 && known.Bytes > most) || known.Kind != kind {
			return nil, status.Errorf(codes.AlreadyExists, "volume %s is of another kind or size", id)
		}
		return d.created(known, req), nil
	}
	if bytes > d.available() {
		return nil, status.Error(codes.ResourceExhausted, "the storage backend is full")
	}
	v := &volume{ID: id, Name: req.Name, Bytes: bytes, Kind: kind}
	from, err := d.source(req.VolumeContentSource, v)
	if err != nil {
		return nil, err
	}
	if err := d.backend.make(v, from); err != nil {
		return nil, internal(err)
	}
	if err := save(d.backend, "volumes", id, v); err != nil {
		return nil, internal(err)
	}
	return d.created(v, req), nil
}

func (d *driver) created(v *volume, req *csi.CreateVolumeRequest) *csi.CreateVolumeResponse {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: v.ID, CapacityBytes: v.Bytes, ContentSource: req.VolumeContentSource,
		VolumeContext: map[string]string{"kind": v.Kind}, AccessibleTopology: d.topology(),
	}}
}

func kindOf(req *csi.CreateVolumeRequest) (string, error) {
	kind := req.Parameters["kind"]
	if kind == "" {
		kind = "folder"
	}
	if kind != "folder" && kind != "image" {
		return "", invalid("there is no kind %q; use folder or image", kind)
	}
	for _, capability := range req.VolumeCapabilities {
		if capability.GetBlock() != nil {
			kind = "block"
		}
	}
	for _, capability := range req.VolumeCapabilities {
		if kind != "folder" && isForManyNodes(capability) {
			return "", invalid("a volume of kind %s can be attached to one node only", kind)
		}
	}
	return kind, nil
}

func isForManyNodes(capability *csi.VolumeCapability) bool {
	switch capability.GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		return true
	}
	return false
}

// source is the path with the contents for a new volume, or "".
func (d *driver) source(content *csi.VolumeContentSource, v *volume) (string, error) {
	var folder, id, kind string
	var bytes int64
	switch {
	case content.GetSnapshot() != nil:
		s, err := load[snapshot](d.backend, "snapshots", content.GetSnapshot().SnapshotId)
		if err != nil {
			return "", status.Errorf(codes.NotFound, "no snapshot %q", content.GetSnapshot().SnapshotId)
		}
		folder, id, kind, bytes = "snapshots", s.ID, s.Kind, s.Bytes
	case content.GetVolume() != nil:
		other, err := load[volume](d.backend, "volumes", content.GetVolume().VolumeId)
		if err != nil {
			return "", status.Errorf(codes.NotFound, "no volume %q", content.GetVolume().VolumeId)
		}
		folder, id, kind, bytes = "volumes", other.ID, other.Kind, other.Bytes
	default:
		return "", nil
	}
	if kind != v.Kind || bytes > v.Bytes {
		return "", invalid("%s holds %d bytes in a volume of kind %s", id, bytes, kind)
	}
	v.Source = id
	return d.backend.data(folder, id, kind), nil
}

func (d *driver) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.VolumeId == "" {
		return nil, invalid("no volume is named")
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if errors.Is(err, fs.ErrNotExist) {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, internal(err)
	}
	for node := range v.Attached {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s", v.ID, node)
	}
	if err := os.RemoveAll(d.backend.path("volumes", v.ID)); err != nil {
		return nil, internal(err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerPublishVolume refuses a second node for a volume that only one may have, in whichever cluster it is.
func (d *driver) ControllerPublishVolume(_ context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if req.VolumeId == "" || req.NodeId == "" || req.VolumeCapability == nil {
		return nil, invalid("a volume, a node and a capability must be named")
	}
	if !d.shared && req.NodeId != d.node {
		return nil, status.Errorf(codes.NotFound, "no node %q", req.NodeId)
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", req.VolumeId)
	}
	wanted := attachment{ReadOnly: req.Readonly, Single: !isForManyNodes(req.VolumeCapability)}
	for node, other := range v.Attached {
		if node == req.NodeId && other.ReadOnly != wanted.ReadOnly {
			return nil, status.Errorf(codes.AlreadyExists, "volume %s is attached to %s otherwise", v.ID, node)
		}
		if node != req.NodeId && (wanted.Single || other.Single) {
			return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to node %s", v.ID, node)
		}
	}
	if v.Attached == nil {
		v.Attached = map[string]attachment{}
	}
	v.Attached[req.NodeId] = wanted
	if err := save(d.backend, "volumes", v.ID, v); err != nil {
		return nil, internal(err)
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (d *driver) ControllerUnpublishVolume(_ context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if req.VolumeId == "" {
		return nil, invalid("no volume is named")
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if errors.Is(err, fs.ErrNotExist) {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if err != nil {
		return nil, internal(err)
	}
	if delete(v.Attached, req.NodeId); req.NodeId == "" {
		v.Attached = nil
	}
	if err := save(d.backend, "volumes", v.ID, v); err != nil {
		return nil, internal(err)
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if req.VolumeId == "" || len(req.VolumeCapabilities) == 0 {
		return nil, invalid("a volume and capabilities must be named")
	}
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", req.VolumeId)
	}
	for _, capability := range req.VolumeCapabilities {
		if (capability.GetBlock() != nil) != (v.Kind == "block") || (v.Kind != "folder" && isForManyNodes(capability)) {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: "a volume of kind " + v.Kind + " cannot do that"}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.VolumeContext, VolumeCapabilities: req.VolumeCapabilities, Parameters: req.Parameters,
	}}, nil
}

func (d *driver) available() int64 {
	volumes, _ := all[volume](d.backend, "volumes")
	left := d.limit
	for _, v := range volumes {
		left -= v.Bytes
	}
	return left
}

func (d *driver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: d.available()}, nil
}

func (d *driver) ListVolumes(_ context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	volumes, err := all[volume](d.backend, "volumes")
	if err != nil {
		return nil, internal(err)
	}
	from, to, next, err := pageOf(len(volumes), req.StartingToken, req.MaxEntries)
	if err != nil {
		return nil, err
	}
	response := &csi.ListVolumesResponse{NextToken: next}
	for _, v := range volumes[from:to] {
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{
			Volume: &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Bytes},
		})
	}
	return response, nil
}

func pageOf(count int, token string, most int32) (from, to int, next string, err error) {
	if token != "" {
		from, err = strconv.Atoi(token)
		if err != nil || from > count {
			return 0, 0, "", status.Errorf(codes.Aborted, "%q is not a token of this driver", token)
		}
	}
	to = count
	if most > 0 && from+int(most) < count {
		to = from + int(most)
		next = strconv.Itoa(to)
	}
	return from, to, next, nil
}

func (d *driver) ControllerExpandVolume(_ context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if req.VolumeId == "" || req.CapacityRange == nil {
		return nil, invalid("a volume and a capacity must be named")
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	v, err := load[volume](d.backend, "volumes", req.VolumeId)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", req.VolumeId)
	}
	bytes := max(v.Bytes, req.CapacityRange.RequiredBytes)
	if bytes-v.Bytes > d.available() {
		return nil, status.Error(codes.ResourceExhausted, "the storage backend is full")
	}
	if err := d.backend.grow(v, bytes); err != nil {
		return nil, internal(err)
	}
	v.Bytes = bytes
	if err := save(d.backend, "volumes", v.ID, v); err != nil {
		return nil, internal(err)
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: bytes, NodeExpansionRequired: v.Kind != "folder"}, nil
}

func (d *driver) CreateSnapshot(_ context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if req.Name == "" || req.SourceVolumeId == "" {
		return nil, invalid("a snapshot needs a name and a volume")
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	s, err := d.snapshot(req.Name, req.SourceVolumeId, "")
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: s.message()}, nil
}

// snapshot makes a snapshot, or finds that of the same name; the backend must be locked.
func (d *driver) snapshot(name, volumeID, group string) (*snapshot, error) {
	id := idOf("snap", name)
	if known, err := load[snapshot](d.backend, "snapshots", id); err == nil {
		if known.Volume != volumeID {
			return nil, status.Errorf(codes.AlreadyExists, "snapshot %q is of another volume", name)
		}
		return known, nil
	}
	v, err := load[volume](d.backend, "volumes", volumeID)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "no volume %q", volumeID)
	}
	s := &snapshot{ID: id, Name: name, Volume: v.ID, Group: group, Bytes: v.Bytes, Kind: v.Kind, Created: timestamppb.Now().AsTime()}
	dir := d.backend.path("snapshots", id)
	err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
	if err == nil {
		err = copyContents(d.backend.data("volumes", v.ID, v.Kind), d.backend.data("snapshots", id, v.Kind), v.Kind)
	}
	if err == nil {
		err = save(d.backend, "snapshots", id, s)
	}
	if err != nil {
		return nil, internal(err)
	}
	return s, nil
}

func (s *snapshot) message() *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: s.ID, SourceVolumeId: s.Volume, SizeBytes: s.Bytes, GroupSnapshotId: s.Group,
		CreationTime: timestamppb.New(s.Created), ReadyToUse: true,
	}
}

func (d *driver) DeleteSnapshot(_ context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if req.SnapshotId == "" {
		return nil, invalid("no snapshot is named")
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	s, err := load[snapshot](d.backend, "snapshots", req.SnapshotId)
	if errors.Is(err, fs.ErrNotExist) {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if err == nil {
		err = os.RemoveAll(d.backend.path("snapshots", s.ID))
	}
	if err != nil {
		return nil, internal(err)
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

func (d *driver) ListSnapshots(_ context.Context, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	snapshots, err := all[snapshot](d.backend, "snapshots")
	if err != nil {
		return nil, internal(err)
	}
	var wanted []*snapshot
	for _, s := range snapshots {
		if (req.SnapshotId == "" || req.SnapshotId == s.ID) && (req.SourceVolumeId == "" || req.SourceVolumeId == s.Volume) {
			wanted = append(wanted, s)
		}
	}
	sort.Slice(wanted, func(i, j int) bool { return wanted[i].Created.Before(wanted[j].Created) })
	from, to, next, err := pageOf(len(wanted), req.StartingToken, req.MaxEntries)
	if err != nil {
		return nil, err
	}
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, s := range wanted[from:to] {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s.message()})
	}
	return response, nil
}

func (d *driver) GroupControllerGetCapabilities(context.Context, *csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: []*csi.GroupControllerServiceCapability{{
		Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{
			Type: csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
		}},
	}}}, nil
}

func (d *driver) CreateVolumeGroupSnapshot(_ context.Context, req *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	if req.Name == "" || len(req.SourceVolumeIds) == 0 {
		return nil, invalid("a group snapshot needs a name and volumes")
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	group := idOf("group", req.Name)
	members, err := d.groupMembers(group)
	if err != nil {
		return nil, err
	}
	if len(members) > 0 && !isOf(members, req.SourceVolumeIds) {
		return nil, status.Errorf(codes.AlreadyExists, "group snapshot %q is of other volumes", req.Name)
	}
	for _, id := range req.SourceVolumeIds {
		if _, err := d.snapshot(req.Name+"/"+id, id, group); err != nil {
			return nil, err
		}
	}
	message, err := d.group(group)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: message}, nil
}

func isOf(members []*snapshot, volumes []string) bool {
	wanted := map[string]bool{}
	for _, id := range volumes {
		wanted[id] = true
	}
	for _, s := range members {
		if !wanted[s.Volume] {
			return false
		}
	}
	return len(members) == len(wanted)
}

func (d *driver) groupMembers(group string) ([]*snapshot, error) {
	snapshots, err := all[snapshot](d.backend, "snapshots")
	if err != nil {
		return nil, internal(err)
	}
	var members []*snapshot
	for _, s := range snapshots {
		if s.Group == group {
			members = append(members, s)
		}
	}
	return members, nil
}

func (d *driver) group(group string) (*csi.VolumeGroupSnapshot, error) {
	members, err := d.groupMembers(group)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, status.Errorf(codes.NotFound, "no group snapshot %q", group)
	}
	message := &csi.VolumeGroupSnapshot{
		GroupSnapshotId: group, CreationTime: timestamppb.New(members[0].Created), ReadyToUse: true,
	}
	for _, s := range members {
		message.Snapshots = append(message.Snapshots, s.message())
	}
	return message, nil
}

func (d *driver) GetVolumeGroupSnapshot(_ context.Context, req *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if req.GroupSnapshotId == "" {
		return nil, invalid("no group snapshot is named")
	}
	message, err := d.group(req.GroupSnapshotId)
	if err != nil {
		return nil, err
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: message}, nil
}

func (d *driver) DeleteVolumeGroupSnapshot(_ context.Context, req *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	if req.GroupSnapshotId == "" {
		return nil, invalid("no group snapshot is named")
	}
	unlock, err := d.backend.lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	members, err := d.groupMembers(req.GroupSnapshotId)
	for _, s := range members {
		if err == nil {
			err = os.RemoveAll(d.backend.path("snapshots", s.ID))
		}
	}
	if err != nil {
		return nil, internal(err)
	}
	return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
}
