// Drops pod fields whose feature gate is off by default in Kubernetes 1.34. As upstream, without a warning.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { objectIn, objectsIn } from './default-functions.ts'

const kinds = ['containers', 'initContainers', 'ephemeralContainers'] as const

/** Drops the fields from the spec of a pod or of a pod template. Mutates `spec`. */
export function dropDisabledMembers(spec: JsonObject): void {
  delete spec['hostnameOverride']
  const images = dropImageVolumes(spec)
  for (const volume of objectsIn(spec, 'volumes'))
    for (const source of objectsIn(objectIn(volume, 'projected'), 'sources')) {
      delete source['clusterTrustBundle']
      delete source['podCertificate']
    }
  for (const kind of kinds)
    for (const container of objectsIn(spec, kind)) {
      dropFromContainer(container, { mayBeSidecar: kind === 'initContainers' })
      if (images !== undefined) dropMounts(container, images)
    }
}

function dropFromContainer(container: JsonObject, { mayBeSidecar }: { mayBeSidecar: boolean }): void {
  delete container['restartPolicyRules']
  if (!mayBeSidecar || container['restartPolicy'] !== 'Always') delete container['restartPolicy']
  const lifecycle = objectIn(container, 'lifecycle')
  if (lifecycle['stopSignal'] !== undefined) {
    delete lifecycle['stopSignal']
    if (Object.keys(lifecycle).length === 0) delete container['lifecycle']
  }
  for (const variable of objectsIn(container, 'env')) delete objectIn(variable, 'valueFrom')['fileKeyRef']
}

/** Drops image volumes and returns their names; undefined if there are none. */
function dropImageVolumes(spec: JsonObject): ReadonlySet<unknown> | undefined {
  const volumes = objectsIn(spec, 'volumes')
  const images = volumes.filter(({ image }) => image !== undefined)
  if (images.length === 0) return undefined
  setOrDelete(
    spec,
    'volumes',
    volumes.filter(({ image }) => image === undefined),
  )
  return new Set(images.map(({ name }) => name))
}

function dropMounts(container: JsonObject, images: ReadonlySet<unknown>): void {
  const mounts = objectsIn(container, 'volumeMounts')
  setOrDelete(
    container,
    'volumeMounts',
    mounts.filter(({ name }) => !images.has(name)),
  )
}

function setOrDelete(object: JsonObject, member: string, list: JsonObject[]): void {
  if (list.length > 0) object[member] = list
  else Reflect.deleteProperty(object, member)
}
