// The patch type of a PATCH, by its Content-Type.

/** JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch, or server-side apply. */
export type PatchType = 'json' | 'merge' | 'strategic' | 'apply'

const patchTypes: ReadonlyMap<string, PatchType> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
  ['application/apply-patch+yaml', 'apply'],
])

/** The patch type; undefined for a Content-Type that is no patch. */
export function patchTypeOf(contentType: string | undefined): PatchType | undefined {
  const [type = ''] = (contentType ?? '').split(';', 1)
  return patchTypes.get(type.trim().toLowerCase())
}
