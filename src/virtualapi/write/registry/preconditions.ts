// Checks by uid and resourceVersion that an object is still the object that the client means.
import { zeroRevision, type ObjectMeta } from '#apimachinery/meta/index.ts'
import { conflict, invalid, objectModified } from '#apimachinery/status/index.ts'
import type { DeleteOptions } from './deletion.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

/**
 * Checks an update. Throws 409 if the uid differs or the object was changed, 422 if its kind requires a
 * resourceVersion.
 */
export function checkPreconditions(
  { info, strategy }: ResourceDefinition,
  next: ObjectMeta,
  old: ObjectMeta,
  { unconditional, isPatch }: { unconditional: boolean; isPatch: boolean },
): void {
  const name = old.name ?? ''
  if (!isPatch && next.uid && next.uid !== old.uid)
    throw conflict(
      info,
      name,
      `Precondition failed: UID in precondition: ${next.uid}, UID in object meta: ${old.uid ?? ''}`,
    )
  if (!next.resourceVersion || next.resourceVersion === '0') {
    if (strategy.allowUnconditionalUpdate === false && !unconditional)
      // As upstream, the error names the resource here and the kind everywhere else.
      throw invalid({ group: info.group, kind: info.resource }, name, [
        {
          reason: 'FieldValueInvalid',
          message: 'Invalid value: 0: must be specified for an update',
          field: 'metadata.resourceVersion',
        },
      ])
  } else if (next.resourceVersion !== old.resourceVersion) throw conflict(info, name, objectModified)
}

/** Checks a deletion. Throws 409 if the uid or the resourceVersion differs. */
export function checkDeletePreconditions(
  { info }: ResourceDefinition,
  meta: ObjectMeta,
  { uid, resourceVersion }: DeleteOptions,
): void {
  // As upstream, the error names the kind here and the resource everywhere else.
  const refused = (text: string): Error => conflict({ group: info.group, resource: info.kind }, meta.name ?? '', text)
  if (uid !== undefined && uid !== meta.uid)
    throw refused(
      `the UID in the precondition (${uid}) does not match the UID in record (${meta.uid ?? ''}). The object might have been deleted and then recreated`,
    )
  if (resourceVersion !== undefined && resourceVersion !== meta.resourceVersion)
    throw refused(
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${meta.resourceVersion ?? String(zeroRevision)}). The object might have been modified`,
    )
}
