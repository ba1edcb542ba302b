// One built-in kind as a table: a valid object, invalid variants, and allowed and forbidden updates.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { applyMergePatch } from '#apimachinery/patch/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { pathOf, type Manifest } from '#test/parity/support/session.ts'

/** A description and a merge patch. */
export type Change = readonly [about: string, patch: JsonValue]

export interface KindTable {
  readonly object: Manifest
  /** New objects, each a variant of the valid one; sent as dry runs. */
  readonly others?: readonly Change[]
  /** Updates of the stored one; sent as dry runs. */
  readonly updates?: readonly Change[]
  /** Updates through subresources, which are stored. */
  readonly parts?: readonly (readonly [subresource: string, about: string, patch: JsonValue])[]
  /** Other versions in which the same object is read. */
  readonly alsoAs?: readonly string[]
}

const tableHeaders = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }

/** The rows of a table. `about` distinguishes several tables of one kind. */
export function kindRows(table: KindTable, about = ''): Row[] {
  const { object, others = [], updates = [], parts = [], alsoAs = [] } = table
  const named = (name: string): Manifest => ({ ...object, metadata: { ...object.metadata, name } })
  const kind = `${object.apiVersion} ${object.kind}${about === '' ? '' : ` (${about})`}`
  const ownName =
    typeof object.metadata['name'] === 'string' ? object.metadata['name'] : `${object.kind.toLowerCase()}-$ID`
  const good = named(ownName)
  const path = pathOf(good)
  return [
    row(`${kind}: created and read`, async (session) => {
      await session.create(good)
      await session.get(path)
      await session.get(path, { headers: tableHeaders })
      for (const apiVersion of alsoAs) await session.get(pathOf({ ...good, apiVersion }))
    }),
    ...others.map(([what, patch]) =>
      row(`${kind}: new with ${what}`, async (session) => {
        const other = applyMergePatch(named('other-$ID'), patch) as Manifest
        await session.send('POST', `${pathOf(object, { collection: true })}?dryRun=All`, { body: other })
      }),
    ),
    ...updates.map(([what, patch]) =>
      row(`${kind}: changed: ${what}`, async (session) => {
        await session.patch(`${path}?dryRun=All`, patch)
      }),
    ),
    ...parts.map(([subresource, what, patch]) =>
      row(`${kind}: ${subresource}: ${what}`, async (session) => {
        await session.patch(`${path}/${subresource}`, patch)
      }),
    ),
    row(`${kind}: an update without a change, one of another revision, one without`, async (session) => {
      await session.change(path, () => undefined)
      await session.change(`${path}?dryRun=All`, (one) =>
        Object.assign(one['metadata'] as JsonObject, { resourceVersion: '1' }),
      )
      await session.send('PUT', `${path}?dryRun=All`, { body: good })
      await session.send('PUT', `${pathOf(named('absent-$ID'))}?dryRun=All`, { body: named('absent-$ID') })
    }),
    row(`${kind}: deleted`, async (session) => {
      // Controllers that remove finalizers may be slow or absent: later requests on it are not compared.
      await session.delete(path)
    }),
  ]
}
