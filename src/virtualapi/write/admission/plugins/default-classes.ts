// Gives claims and ingresses that name no class the default class of the logical cluster.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { decodeMetadata } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'

/** A kind whose objects name a class. */
interface Classed {
  /** Store keys of the objects and of their classes. */
  readonly resource: string
  readonly classes: string
  /** The member of spec, and the older annotation that names the class. */
  readonly member: string
  readonly annotation: string
  /** Annotations that mark the default class. */
  readonly marks: readonly string[]
}

/** Sets spec.storageClassName of new claims. */
export const defaultStorageClass = defaultClass('DefaultStorageClass', {
  resource: 'persistentvolumeclaims',
  classes: 'storageclasses.storage.k8s.io',
  member: 'storageClassName',
  annotation: 'volume.beta.kubernetes.io/storage-class',
  marks: ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class'],
})

/** Sets spec.ingressClassName of new ingresses. */
export const defaultIngressClass = defaultClass('DefaultIngressClass', {
  resource: 'ingresses.networking.k8s.io',
  classes: 'ingressclasses.networking.k8s.io',
  member: 'ingressClassName',
  annotation: 'kubernetes.io/ingress.class',
  marks: ['ingressclass.kubernetes.io/is-default-class'],
})

function defaultClass(name: string, kind: Classed): AdmissionPlugin {
  const { resource, member, annotation } = kind
  return {
    name,
    mutate({ operation, definition, subresource, context }, object) {
      if (operation !== 'CREATE' || subresource !== '' || definition.storageKey !== resource) return
      const spec = object['spec'] as Record<string, unknown> | undefined
      if (spec === undefined || spec[member] !== undefined) return
      if (object.metadata.annotations?.[annotation] !== undefined) return
      const found = newestDefault(context.objects, kind)
      if (found !== undefined) spec[member] = found
    },
  }
}

/**
 * The name of the default class; undefined if there is none. Of several default classes, the newest counts; of equally
 * old ones, the first by name.
 */
function newestDefault(objects: ClusterObjects, { classes, marks }: Classed): string | undefined {
  const found = objects
    .list({ resource: classes })
    .map(({ bytes }): KubeObject['metadata'] => decodeMetadata(bytes))
    .filter(({ annotations = {} }) => marks.some((mark) => annotations[mark] === 'true'))
    .sort((a, b) => Date.parse(b.creationTimestamp ?? '') - Date.parse(a.creationTimestamp ?? ''))
  return found[0]?.name
}
