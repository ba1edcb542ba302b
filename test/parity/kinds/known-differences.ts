// Rows in which built-in kinds differ from a real server, by title, with the reason.
const list = (reason: string, titles: readonly string[]): Record<string, string> =>
  Object.fromEntries(titles.map((title) => [title, reason]))

export const knownKindDifferences: Readonly<Record<string, string>> = {
  'autoscaling/v1 HorizontalPodAutoscaler (v1): new with annotations of v2':
    'annotations with fields of v2 are not read here',
  ...list('an empty list of ports is owned by nobody', [
    'warnings: endpoint slices: IPv4',
    'warnings: endpoint slices: FQDN',
  ]),
  ...list('kcp warns of what members will not get of a Service', [
    'v1 Service: new with fields that are not validated',
    'warnings: a service with deprecated addresses',
  ]),
  ...list('the types are checked when the policy is written, not by a controller afterwards (status)', [
    'admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy: created and read',
    'admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy: status: observed',
    'admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy: an update without a change, one of another revision, one without',
  ]),
  'v1 Pod (whole): created and read': 'kcp warns of tokens that members will not issue',
  'wrong types: apiregistration.k8s.io/v1 APIService':
    'one message names the type of a condition string, not v1.APIServiceConditionType',
  // Refused by both, at least in part.
  ...list('refused with other messages, or with only some of the causes', ['v1 ResourceQuota: status: invalid used']),
  'v1 Event: changed: a series with an invalid time':
    'the message contains the patched object with its fields in another order',
  'v1 Service: new with an address out of range': 'the message contains the range, which is another one',
  'v1 Service: new with a node port out of range': 'a dry run of a real server allocates no port',
  'batch/v1 Job: new with an invalid failure policy': 'the message of upstream shows null for an empty list',
  'batch/v1 Job: new with a success policy': 'the message of upstream shows null for an empty list',
  'apps/v1 DaemonSet: created and read': 'tables of a real server omit the annotation of the template generation',
  'networking.k8s.io/v1 ServiceCIDR: an update without a change, one of another revision, one without':
    'follows from a status that was not refused before',
  'storage.k8s.io/v1 VolumeAttributesClass: created and read':
    'no finalizer protects it: nothing uses it in a logical cluster',
  'storage.k8s.io/v1 VolumeAttributesClass: an update without a change, one of another revision, one without':
    'no finalizer protects it: nothing uses it in a logical cluster',
  'storage.k8s.io/v1 VolumeAttributesClass: deleted': 'no finalizer protects it: nothing uses it in a logical cluster',
}
