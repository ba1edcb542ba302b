// Names of properties as identifiers of expressions: `x-y` is written `x__dash__y`.

const reserved: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

const parts: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
}

const originals: Readonly<Record<string, string>> = { underscores: '__', dot: '.', dash: '-', slash: '/' }

/** The identifier for a property; undefined where expressions cannot name it. */
export function escapeFieldName(name: string): string | undefined {
  if (name === '' || /^[0-9]/.test(name)) return undefined
  if (reserved.has(name)) return `__${name}__`
  if (/[^a-zA-Z0-9\-./_]/.test(name)) return undefined
  return name.replaceAll(/__|[-./]/g, (part) => parts[part] ?? part)
}

/** The property that an identifier stands for; undefined if it contains an invalid escape. */
export function unescapeFieldName(identifier: string): string | undefined {
  if (!identifier.includes('__')) return identifier
  const invalid: string[] = []
  const name = identifier.replaceAll(/_{2}([^_]+)_{2}/g, (whole, inner: string) => {
    const original = Object.hasOwn(originals, inner) ? originals[inner] : undefined
    if (original !== undefined) return original
    if (!reserved.has(inner) || whole.length !== identifier.length) invalid.push(whole)
    return inner
  })
  return invalid.length === 0 ? name : undefined
}

/** True for words that expressions must escape when they name a property. */
export const isReservedWord = (name: string): boolean => reserved.has(name)
