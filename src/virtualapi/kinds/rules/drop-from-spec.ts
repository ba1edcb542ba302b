// Drops fields whose feature gates are off by default.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'

/** Drops these members of the spec, as upstream does with its default feature gates. Mutates the object. */
export function dropFromSpec({ spec }: KubeObject, members: readonly string[]): void {
  if (isJsonObject(spec)) for (const member of members) Reflect.deleteProperty(spec, member)
}
