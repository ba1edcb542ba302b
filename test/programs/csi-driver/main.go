// A CSI driver for tests. Volumes are folders or files of one folder on this machine, so drivers of several clusters
// that are given the same folder share one storage backend: handles of one are valid in the other.
//
// A class chooses how volumes are kept by the parameter `kind`: "folder" (bind mounts; capacity is not enforced) or
// "image" (ext4 in a file, mounted through a loop device; capacity is enforced). Block volumes are loop devices.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const version = "1.0.0"

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	name     string
	node     string
	endpoint string
	// Volumes can be reached from every node of every cluster.
	shared bool
	// Bytes that all volumes together may have.
	limit   int64
	backend backend
}

func main() {
	d := &driver{}
	registry := flag.String("registry", "", "folder where the kubelet looks for plugins")
	flag.StringVar(&d.name, "name", "csi.test.kcp.dev", "name of the driver")
	flag.StringVar(&d.node, "node", "", "name of the node")
	flag.StringVar(&d.endpoint, "endpoint", "", "path of the socket")
	flag.StringVar(&d.backend.dir, "dir", "", "folder with the volumes")
	flag.Int64Var(&d.limit, "limit", 1<<40, "bytes that all volumes together may have")
	flag.BoolVar(&d.shared, "shared", false, "volumes can be reached from every node")
	flag.Parse()
	if err := d.backend.prepare(); err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logCalls))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterGroupControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	if *registry != "" {
		registrar := grpc.NewServer()
		registration.RegisterRegistrationServer(registrar, d)
		go serve(registrar, filepath.Join(*registry, d.name+"-reg.sock"))
	}
	serve(server, d.endpoint)
}

func serve(server *grpc.Server, path string) {
	// A driver that was killed leaves its socket.
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.Serve(listener))
}

func logCalls(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, req)
	if err != nil {
		log.Printf("%s %v: %v", info.FullMethod, req, err)
	} else if info.FullMethod != "/csi.v1.Identity/Probe" {
		log.Printf("%s %v", info.FullMethod, req)
	}
	return response, err
}

// GetInfo answers the kubelet, as node-driver-registrar does for other drivers.
func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: d.name, Endpoint: d.endpoint, SupportedVersions: []string{version},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, req *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !req.PluginRegistered {
		log.Printf("the kubelet refused the driver: %s", req.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: version}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	response := &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}},
	}}}
	services := []csi.PluginCapability_Service_Type{
		csi.PluginCapability_Service_CONTROLLER_SERVICE,
		csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE,
	}
	if !d.shared {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	for _, service := range services {
		response.Capabilities = append(response.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: service}},
		})
	}
	return response, nil
}

// topology is where a volume of this driver can be reached; nil stands for everywhere.
func (d *driver) topology() []*csi.Topology {
	if d.shared {
		return nil
	}
	return []*csi.Topology{{Segments: d.segments()}}
}

func (d *driver) segments() map[string]string {
	return map[string]string{"topology." + d.name + "/node": d.node}
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func internal(err error) error { return status.Error(codes.Internal, err.Error()) }
