// The fieldPath of a validation rule: fields and keys of maps, such as `.spec.a` or `.map['a key']`.
import type { SchemaNode } from '#apimachinery/schema/index.ts'

const tokens = /'(?:[^'\\]|\\.)*'|[.[\]]|[^.[\]]+/g
const escapes: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '\\': '\\',
}

/** The path in the form of messages; undefined if it does not lead to a field of the schema. */
export function ruleFieldPath(path: string, schema: SchemaNode): string | undefined {
  const steps = stepsOf(path)
  if (steps === undefined) return undefined
  let at: SchemaNode = schema
  let text = ''
  for (const step of steps) {
    const isField = at.properties !== undefined
    const next = isField ? fieldAt(at, step) : at.additionalProperties
    if (typeof next !== 'object') return undefined
    if (!isField) text += `[${step}]`
    else text += text === '' ? step : `.${step}`
    at = next
  }
  return text
}

const fieldAt = ({ properties = {} }: SchemaNode, name: string): SchemaNode | undefined =>
  Object.hasOwn(properties, name) ? properties[name] : undefined

function stepsOf(path: string): string[] | undefined {
  const all = path.match(tokens) ?? []
  const steps: string[] = []
  for (let i = 0; i < all.length; i += 2) {
    const name = all[i + 1]
    if (name === undefined) return undefined
    if (all[i] === '.') steps.push(name)
    else {
      const key = all[i] === '[' && all[i + 2] === ']' ? quoted(name) : undefined
      if (key === undefined) return undefined
      steps.push(key)
      i++
    }
  }
  return steps
}

function quoted(token: string): string | undefined {
  if (token.length < 2 || !token.startsWith("'") || !token.endsWith("'")) return undefined
  const unknown: string[] = []
  const text = token.slice(1, -1).replace(/\\(.)/g, (_, char: string) => {
    const meant = escapes[char]
    if (meant === undefined) unknown.push(char)
    return meant ?? ''
  })
  return unknown.length === 0 ? text : undefined
}
