// The data that stored objects would lose if another definition of their kind replaced the present one. Pure.
import { cloneJson, type DeepReadonly, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { parseStructuralSchema, pruneUnknown } from '#apimachinery/schema/index.ts'
import { storageOf, versionsOf, type Cut } from './negotiate.ts'

const maxFields = 5

/**
 * What `objects` would lose if the definition with spec `next` replaced the present one, whose spec is `shown`. Objects
 * are kept in the stored version, without conversion.
 */
export function cutOf(objects: Iterable<DeepReadonly<KubeObject>>, shown: JsonObject, next: JsonObject): Cut {
  const schema = versionsOf(next).get(storageOf(next) ?? '')
  const lost = new Set<string>()
  let count = 0
  const gone = [...versionsOf(shown).keys()].filter((version) => !versionsOf(next).has(version))
  const parsed = schema && parseStructuralSchema(schema)
  for (const object of objects) {
    const copy: JsonObject = cloneJson(object as unknown as JsonObject)
    const paths = parsed === undefined ? [] : pruneUnknown(copy, parsed, { isResourceRoot: true })
    const version = object.apiVersion.slice(object.apiVersion.indexOf('/') + 1)
    const isVersionGone = gone.includes(version)
    if (paths.length === 0 && !isVersionGone) continue
    count++
    for (const path of isVersionGone ? [`version ${version}`, ...paths] : paths)
      if (lost.size < maxFields) lost.add(path.replaceAll(/\[\d+\]/g, '[]'))
  }
  return { objects: count, fields: [...lost] }
}
