// Reads FieldsV1 of clients, which may be in any order and contain unknown or malformed steps, and sorts sets.
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { emptySet, nodeOf, type FieldSet, type FieldSetBuilder } from './field-set.ts'
import { canonicalElement, compareElements } from './path-element.ts'

/** The set in a FieldsV1. Throws for a value that is not FieldsV1. */
export function parseFieldsV1(fields: unknown): FieldSet {
  if (fields === null || fields === undefined) return emptySet
  const { children } = parseNode(fields)
  return children
}

/** Sets that are known to be sorted, with all nodes below them. */
const sortedSets = new WeakSet<FieldSet>()

/** Sorts like `sortFields`, and freezes the set, because other objects will share it. */
export function sortForReuse(set: FieldSet): FieldSet {
  const sorted = sortFields(set)
  freeze(sorted)
  sortedSets.add(sorted)
  return sorted
}

function freeze(set: FieldSet): void {
  if (Object.isFrozen(set)) return
  Object.freeze(set)
  for (const element in set) freeze(set[element] ?? emptySet)
}

/** The same set with the steps in the order that upstream writes; `.` comes first. */
export function sortFields(set: FieldSet): FieldSet {
  if (set === emptySet || sortedSets.has(set)) return set
  const elements = Object.keys(set)
  if (elements.length === 0) return set
  const sorted = isSorted(elements)
  let changed = !sorted
  const nodes = elements.map((element) => {
    const node = set[element] ?? emptySet
    const next = sortFields(node)
    changed ||= next !== node
    return next
  })
  if (!changed) return set
  const result: FieldSetBuilder = {}
  if (sorted) for (const [i, element] of elements.entries()) result[element] = nodes[i] ?? emptySet
  else {
    const order = elements.map((_, i) => i).sort((a, b) => inOrder(elements[a] ?? '', elements[b] ?? ''))
    for (const i of order) result[elements[i] ?? ''] = nodes[i] ?? emptySet
  }
  return result
}

function parseNode(value: unknown): { member: boolean; children: FieldSet } {
  if (value === null) return { member: true, children: emptySet }
  if (!isJsonObject(value)) throw new Error(`ReadMapCB: expect { or n, but found ${JSON.stringify(value)}`)
  const children: FieldSetBuilder = {}
  let [member, isLeaf] = [false, true]
  for (const key of Object.keys(value)) {
    if (key === '.') {
      member = true
      continue
    }
    const element = canonicalElement(key)
    if (element === undefined) continue
    const child = parseNode(value[key])
    const node = nodeOf(child.member, child.children)
    if (node === undefined) continue
    isLeaf = false
    children[element] = node
  }
  return { member: member || isLeaf, children }
}

function isSorted(elements: readonly string[]): boolean {
  for (let i = 1; i < elements.length; i++) if (inOrder(elements[i - 1] ?? '', elements[i] ?? '') > 0) return false
  return true
}

function inOrder(a: string, b: string): number {
  if (a === '.' || b === '.') return a === b ? 0 : a === '.' ? -1 : 1
  return compareElements(a, b)
}
