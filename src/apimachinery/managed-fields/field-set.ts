// Sets of fields, in the very form of FieldsV1: a trie of path elements. A node is a member if it has no children or the
// key `.`; the root is none. Sets are never changed once made, so they share what is equal.

/** FieldsV1 as data; also any node below it. */
export interface FieldSet {
  readonly [element: string]: FieldSet
}

/** A set that is being made. */
export type FieldSetBuilder = Record<string, FieldSet>

/** No field; as a node below a root: a member without children. */
export const emptySet: FieldSet = Object.freeze({})

/** What keeps some fields of a set. */
export type FieldFilter = (set: FieldSet) => FieldSet

const self = '.'

/** Whether a root has no members; a set has no nodes that lead to none. */
export function isEmptySet(set: FieldSet): boolean {
  for (const _ in set) return false
  return true
}

/** Whether a node below the root is a member itself. */
export function isMember(node: FieldSet): boolean {
  for (const element in node) if (element !== self) return Object.hasOwn(node, self)
  return true
}

/** The elements under which a node has children. */
export function childrenOf(node: FieldSet): string[] {
  return Object.keys(node).filter((element) => element !== self)
}

export function hasChildren(node: FieldSet): boolean {
  for (const element in node) if (element !== self) return true
  return false
}

/** A node of these children; undefined where it is neither a member nor has any. */
export function nodeOf(member: boolean, children: FieldSet): FieldSet | undefined {
  if (!hasChildren(children)) return member ? emptySet : undefined
  return member ? { [self]: emptySet, ...children } : children
}

/** The set of these paths. */
export function setOf(...paths: readonly (readonly string[])[]): FieldSet {
  let set = emptySet
  for (const path of paths)
    set = union(
      set,
      path.reduceRight<FieldSet>((node, element) => ({ [element]: node }), emptySet),
    )
  return set
}

export function hasPath(set: FieldSet, path: readonly string[]): boolean {
  let node: FieldSet | undefined = set
  for (const element of path) node = node === undefined ? undefined : node[element]
  return path.length > 0 && node !== undefined && isMember(node)
}

/** Every member of `a` or `b`. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmptySet(b)) return a
  if (isEmptySet(a)) return b
  const result: FieldSetBuilder = { ...a }
  for (const element of childrenOf(b)) {
    const [left, right] = [result[element], b[element] ?? emptySet]
    result[element] = left === undefined ? right : unionOfNodes(left, right)
  }
  return result
}

/** Of two nodes below a root. */
export function unionOfNodes(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a
  return nodeOf(isMember(a) || isMember(b), union(withoutSelf(a), withoutSelf(b))) ?? emptySet
}

/** Every member of both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  const result: FieldSetBuilder = {}
  for (const element of childrenOf(a)) {
    const [left, right] = [a[element], b[element]]
    if (left === undefined || right === undefined) continue
    const node = nodeOf(isMember(left) && isMember(right), intersection(left, right))
    if (node !== undefined) result[element] = node
  }
  return result
}

/** Every member of `a` that is none of `b`; children of a member that goes stay. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  let result: FieldSetBuilder | undefined
  for (const element of childrenOf(b)) {
    const [left, right] = [a[element], b[element]]
    if (left === undefined || right === undefined) continue
    const node = nodeOf(isMember(left) && !isMember(right), difference(withoutSelf(left), right))
    if (node === left) continue
    result ??= { ...a }
    replace(result, element, node)
  }
  return result ?? a
}

/** Every member of `a` that is none of `b` and in no member of `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  let result: FieldSetBuilder | undefined
  for (const element of childrenOf(b)) {
    const [left, right] = [a[element], b[element]]
    if (left === undefined || right === undefined) continue
    const rest = isMember(right) ? undefined : nodeOf(isMember(left), recursiveDifference(withoutSelf(left), right))
    if (rest === left) continue
    result ??= { ...a }
    replace(result, element, rest)
  }
  return result ?? a
}

/** Calls `visit` for every member, each before its children, as upstream does: members first, then what is below. */
export function forEachPath(
  set: FieldSet,
  visit: (path: readonly string[]) => void,
  prefix: readonly string[] = [],
): void {
  const elements = childrenOf(set)
  for (const element of elements) if (isMember(set[element] ?? emptySet)) visit([...prefix, element])
  for (const element of elements) {
    const node = set[element] ?? emptySet
    if (hasChildren(node)) forEachPath(node, visit, [...prefix, element])
  }
}

/** True if both have the same members, in whatever order. */
export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  const elements = childrenOf(a)
  if (elements.length !== childrenOf(b).length) return false
  return elements.every((element) => {
    const [left, right] = [a[element], b[element]]
    if (left === undefined || right === undefined) return false
    return isMember(left) === isMember(right) && equalSets(left, right)
  })
}

/** The children of a node alone. */
export function withoutSelf(node: FieldSet): FieldSet {
  if (!Object.hasOwn(node, self)) return node
  const { [self]: _, ...children } = node
  return children
}

function replace(set: FieldSetBuilder, element: string, node: FieldSet | undefined): void {
  if (node === undefined) Reflect.deleteProperty(set, element)
  else set[element] = node
}
