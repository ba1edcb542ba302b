// Validation of the spec of a PersistentVolumeClaim: in claims, StatefulSet templates and ephemeral volumes of pods.
import type {
  V1PersistentVolumeClaimSpec,
  V1PersistentVolumeClaimTemplate,
  V1TypedObjectReference,
} from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { annotations, label, labels, positiveQuantity, subdomain } from './basic-rules.ts'
import { labelSelector } from './label-selector.ts'
import { all, fields, given, nonEmpty, oneOf, optional, present, type Rule } from './vocabulary.ts'

export type ClaimSpec = Data<V1PersistentVolumeClaimSpec>
type Source = Data<V1TypedObjectReference>

const modes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const mode = oneOf(modes)

export const volumeMode = oneOf(['Block', 'Filesystem'])

/** Each access mode must be known, and ReadWriteOncePod excludes all others. */
export const accessModes: Rule<readonly string[] | undefined> = (list, report) => {
  for (const one of list ?? []) report.check(mode, one)
  if (list?.includes('ReadWriteOncePod') && list.some((one) => one !== 'ReadWriteOncePod' && modes.includes(one)))
    report.forbidden('', 'may not use ReadWriteOncePod with other access modes')
}

const source = all<Source>(
  fields({ name: nonEmpty(), kind: nonEmpty() }),
  ({ apiGroup, kind }, report) => {
    if (!apiGroup && kind !== 'PersistentVolumeClaim')
      report.invalid('', kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
  },
  fields({ apiGroup: given(subdomain), namespace: given(label) }),
)

export const claimSpec = all<ClaimSpec>(
  fields({
    accessModes: nonEmpty('at least 1 access mode is required'),
    selector: labelSelector,
  }),
  fields({ accessModes }),
  ({ resources }, report) => report.at('resources[storage]', storage, resources?.requests?.['storage']),
  fields({
    storageClassName: given(subdomain),
    volumeMode,
    dataSource: optional(source),
    dataSourceRef: optional(source),
  }),
  ({ dataSource, dataSourceRef }, report) => {
    if (!dataSource || !dataSourceRef) return
    const { apiGroup, kind, name } = dataSource
    const same = apiGroup === dataSourceRef.apiGroup && kind === dataSourceRef.kind && name === dataSourceRef.name
    // In upstream's errors, the value is a field path by mistake, which is printed as {}.
    if (dataSourceRef.namespace)
      report.invalid('', {}, 'may not be specified when dataSourceRef.namespace is specified')
    else if (!same) report.invalid('', {}, 'must match dataSourceRef')
  },
  fields({ volumeAttributesClassName: given(subdomain) }),
)
const storage = present(positiveQuantity)

/** Metadata that may have only labels and annotations. */
export const templateMetadata: Rule<Data<V1PersistentVolumeClaimTemplate>['metadata']> = (metadata = {}, report) => {
  const { annotations: notes, labels: own, creationTimestamp: _, ...others } = metadata
  report.at('annotations', annotations, notes)
  report.at('labels', labels, own)
  for (const member of Object.keys(others)) report.forbidden(member, 'cannot be set')
}

/** The template of an ephemeral volume's claim. */
export const claimTemplate = fields<Data<V1PersistentVolumeClaimTemplate>>({
  metadata: templateMetadata,
  spec: claimSpec,
})
