// Where built-in kinds differ from a real server's, by title of the row, and why.
const list = (reason: string, titles: readonly string[]): Record<string, string> =>
  Object.fromEntries(titles.map((title) => [title, reason]))

export const knownKindDifferences: Readonly<Record<string, string>> = {
  ...list('a rule of validation that is not there yet: what a real server refuses is stored', [
    'v1 Node: changed: externalID',
    'v1 PersistentVolume: new with recycling the root',
    'v1 PersistentVolume: new with local without affinity',
    'v1 PersistentVolume: new with csi',
    'v1 PersistentVolume: new with affinity that is wrong',
    'v1 PersistentVolume: new with an attributes class',
    'v1 PersistentVolumeClaim: new with a data source',
    'v1 PersistentVolumeClaim: changed: more',
    'autoscaling/v1 HorizontalPodAutoscaler (v1): new with annotations of v2',
    'discovery.k8s.io/v1 EndpointSlice: new with hints',
    'discovery.k8s.io/v1 EndpointSlice: new with many addresses',
    'node.k8s.io/v1 RuntimeClass: new with overhead that is wrong',
    'node.k8s.io/v1 RuntimeClass: new with scheduling that is wrong',
  ]),
  // Refused by both, or by both in part.
  ...list('refused in other words, or for some of the reasons only', [
    'v1 Node: new with taints',
    'v1 Node: new with podCIDRs',
    'v1 Node: new with a status that is wrong',
    'v1 Secret: new with dockerconfigjson that is no JSON',
    'v1 PersistentVolume: new with nothing',
    'v1 PersistentVolume: new with capacity that is wrong',
    'v1 PersistentVolume: changed: the source',
    'v1 PersistentVolume: changed: the mode',
    'v1 PersistentVolumeClaim: changed: less',
    'v1 PersistentVolumeClaim: changed: the class',
    'v1 PersistentVolumeClaim: changed: the mode',
    'v1 ReplicationController: changed: the selector',
    'v1 Endpoints: new with addresses that are wrong',
    'v1 ResourceQuota: status: used that is wrong',
    'v1 Namespace: new with finalizers of its own',
    'apps/v1 Deployment: status: more than there are',
    'discovery.k8s.io/v1 EndpointSlice: new with addresses that are wrong',
    'discovery.k8s.io/v1 EndpointSlice: new with ports that are wrong',
    'rbac.authorization.k8s.io/v1 ClusterRole: new with selectors that are wrong',
  ]),
  'v1 Event: changed: a series with a time that is none':
    'a time that is none is found after the patch is applied, and answered 400',
  'resource.k8s.io/v1 DeviceClass: new with a selector that is no CEL': 'CEL is not compiled',
  'v1 Pod: resize: an image': 'follows from an ephemeral container that was not refused before',
  'v1 Pod: ephemeralcontainers: one': 'follows from an ephemeral container that was not refused before',
  'v1 Pod: ephemeralcontainers: a label': 'follows from an ephemeral container that was not refused before',
  'v1 Pod: deleted': 'follows from an ephemeral container that was not refused before',
  'batch/v1 Job: new with a failure policy that is wrong': 'what is refused is shown with null for an empty list',
  'batch/v1 Job: new with a success policy': 'what is refused is shown with null for an empty list',
  'v1 Secret: new with tls with both': 'nobody looks into certificates',
  'apps/v1 DaemonSet: created and read': 'tables of a real server hide the annotation of the template generation',
  'autoscaling/v2 HorizontalPodAutoscaler: created and read':
    'the annotation that v1 keeps behavior in has its members in another order',
  'networking.k8s.io/v1 NetworkPolicy: new with an odd block': 'nobody is warned of odd forms of addresses',
  'networking.k8s.io/v1 ServiceCIDR: an update without a change, one of another revision, one without':
    'follows from a status that was not refused before',
  'storage.k8s.io/v1 VolumeAttributesClass: created and read':
    'no finalizer protects it: nothing uses it in a logical cluster',
  'storage.k8s.io/v1 VolumeAttributesClass: an update without a change, one of another revision, one without':
    'no finalizer protects it: nothing uses it in a logical cluster',
  'storage.k8s.io/v1 VolumeAttributesClass: deleted': 'no finalizer protects it: nothing uses it in a logical cluster',
}
