// Defaults of pods, of pod templates and of their parts.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { pullPolicyOf } from './image-reference.ts'
import { fill, filling, objectIn, objectsIn, textIn, type DefaultFunctions } from './default-functions.ts'
import { podLevelResources } from './pod-level-resources.ts'

const defaultMode = { defaultMode: 0o644 }

export const podDefaults: DefaultFunctions = {
  'core.v1.Pod': (pod) => {
    const spec = objectIn(pod, 'spec')
    const containers = [...objectsIn(spec, 'containers'), ...objectsIn(spec, 'initContainers')]
    containers.forEach(requestsFromLimits)
    podLevelResources(spec)
    fill(spec, { enableServiceLinks: true })
    if (spec['hostNetwork'] === true) containers.forEach(hostPorts)
  },
  'core.v1.PodSpec': (spec) => {
    // serviceAccount is the deprecated name of serviceAccountName; setting one sets both.
    const account = spec['serviceAccountName'] ?? spec['serviceAccount']
    if (account !== undefined) Object.assign(spec, { serviceAccountName: account, serviceAccount: account })
    fill(spec, {
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      schedulerName: 'default-scheduler',
    })
  },
  'core.v1.Container': containerDefaults,
  'core.v1.EphemeralContainer': containerDefaults,
  'core.v1.ContainerPort': filling({ protocol: 'TCP' }),
  'core.v1.Probe': filling({ timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 }),
  'core.v1.HTTPGetAction': filling({ path: '/', scheme: 'HTTP' }),
  'core.v1.GRPCAction': filling({ service: '' }),
  'core.v1.ObjectFieldSelector': filling({ apiVersion: 'v1' }),
  'core.v1.FileKeySelector': filling({ optional: false }),
  'core.v1.Volume': (volume) => {
    if (Object.keys(volume).length === 1) volume['emptyDir'] = {}
  },
  'core.v1.ImageVolumeSource': (image) => {
    fill(image, { pullPolicy: pullPolicyOf(textIn(image, 'reference')) })
  },
  'core.v1.SecretVolumeSource': filling(defaultMode),
  'core.v1.ConfigMapVolumeSource': filling(defaultMode),
  'core.v1.DownwardAPIVolumeSource': filling(defaultMode),
  'core.v1.ProjectedVolumeSource': filling(defaultMode),
  'core.v1.ServiceAccountTokenProjection': filling({ expirationSeconds: 3600 }),
  'core.v1.HostPathVolumeSource': filling({ type: '' }),
  'core.v1.RBDVolumeSource': filling({ pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' }),
  'core.v1.RBDPersistentVolumeSource': filling({ pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' }),
  'core.v1.ISCSIVolumeSource': filling({ iscsiInterface: 'default' }),
  'core.v1.ISCSIPersistentVolumeSource': filling({ iscsiInterface: 'default' }),
  'core.v1.AzureDiskVolumeSource': filling({
    cachingMode: 'ReadWrite',
    fsType: 'ext4',
    readOnly: false,
    kind: 'Shared',
  }),
  'core.v1.ScaleIOVolumeSource': filling({ storageMode: 'ThinProvisioned', fsType: 'xfs' }),
  'core.v1.ScaleIOPersistentVolumeSource': filling({ storageMode: 'ThinProvisioned', fsType: 'xfs' }),
}

function containerDefaults(container: JsonObject): void {
  fill(container, {
    imagePullPolicy: pullPolicyOf(textIn(container, 'image')),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  })
}

/** Sets missing requests to the limits. Called for pods only, not for templates. */
function requestsFromLimits(container: JsonObject): void {
  const resources = objectIn(container, 'resources')
  if (!isJsonObject(resources['limits'])) return
  resources['requests'] = { ...resources['limits'], ...objectIn(resources, 'requests') }
}

function hostPorts(container: JsonObject): void {
  for (const port of objectsIn(container, 'ports')) {
    const { containerPort } = port
    if (containerPort !== undefined) fill(port, { hostPort: containerPort })
  }
}
