// Members behind feature gates that are off by default.
import { isJsonObject, type KubeObject } from '../../../apimachinery/meta/index.ts'

/** Members of the spec that the default feature gates of a real server drop. */
export function dropFromSpec({ spec }: KubeObject, members: readonly string[]): void {
  if (isJsonObject(spec)) for (const member of members) Reflect.deleteProperty(spec, member)
}
