// Defaults of CustomResourceDefinitions.
import type { CustomResourceDefinition } from './crd-types.ts'

/**
 * Fills in singular, listKind, conversion and the storage version in status.storedVersions. Mutates `crd`. Idempotent.
 */
export function defaultCrd(crd: CustomResourceDefinition): void {
  const { spec } = crd
  const { names } = spec
  if ((names.singular ?? '') === '') names.singular = names.kind.toLowerCase()
  if ((names.listKind ?? '') === '' && names.kind !== '') names.listKind = `${names.kind}List`
  spec.conversion ??= { strategy: 'None' }
  const service = spec.conversion.webhook?.clientConfig?.['service']
  if (typeof service === 'object' && service !== null && !Array.isArray(service)) service['port'] ??= 443
  const storage = spec.versions.find((version) => version.storage)
  const stored = crd.status?.storedVersions ?? []
  if (storage !== undefined && !stored.includes(storage.name)) {
    crd.status = { ...crd.status, storedVersions: [...stored, storage.name] }
  }
}
