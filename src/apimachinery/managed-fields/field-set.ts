// Sets of fields, in the very form of FieldsV1: a trie of path elements. A node is a member if it has no children or
// the key `.`; the root is not a member. Sets are immutable, so they share equal parts.

/** FieldsV1 as data; also any node below it. */
export interface FieldSet {
  readonly [element: string]: FieldSet
}

/** A set under construction. */
export type FieldSetBuilder = Record<string, FieldSet>

/** The set without fields. As a node below a root, it is a member without children. */
export const emptySet: FieldSet = Object.freeze({})

/** A function that keeps some fields of a set. */
export type FieldFilter = (set: FieldSet) => FieldSet

const self = '.'

/** Whether a root has no members: a set has no nodes without members below them. */
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

/** A node with these children; undefined if it is not a member and has no children. */
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

/** Every member of `a` or `b`; `a` itself if `b` has no other members. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmptySet(b)) return a
  if (isEmptySet(a)) return b
  let result: FieldSetBuilder | undefined
  for (const element in b) {
    if (element === self) continue
    const [left, right] = [a[element], b[element] ?? emptySet]
    const node = left === undefined ? right : unionOfNodes(left, right)
    if (node !== left) (result ??= { ...a })[element] = node
  }
  return result ?? a
}

/** The union of two nodes below a root. */
export function unionOfNodes(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a
  if (!hasChildren(b)) return withSelf(a)
  if (!hasChildren(a)) return withSelf(b)
  const both = union(a, b)
  return isMember(b) ? withSelf(both) : both
}

/** The node as a member. */
function withSelf(node: FieldSet): FieldSet {
  return isMember(node) ? node : { [self]: emptySet, ...node }
}

/** Every member of both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a
  const result: FieldSetBuilder = {}
  for (const element in a) {
    const [left, right] = element === self ? [] : [a[element], b[element]]
    if (left === undefined || right === undefined) continue
    const node = left === right ? left : nodeOf(isMember(left) && isMember(right), intersection(left, right))
    if (node !== undefined) result[element] = node
  }
  return result
}

/** Every member of `a` that is not a member of `b`; the children of a removed member stay. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return without(a, b, differenceOfNodes)
}

function differenceOfNodes(left: FieldSet, right: FieldSet): FieldSet | undefined {
  return restOf(difference(left, right), isMember(left) && !isMember(right))
}

/** Every member of `a` that is neither a member of `b` nor inside one. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  return without(a, b, recursiveDifferenceOfNodes)
}

function recursiveDifferenceOfNodes(left: FieldSet, right: FieldSet): FieldSet | undefined {
  return isMember(right) ? undefined : restOf(recursiveDifference(left, right), isMember(left))
}

/** The node, made a member or not; undefined if nothing is left of it. */
function restOf(node: FieldSet, member: boolean): FieldSet | undefined {
  if (!hasChildren(node)) return !member ? undefined : isEmptySet(node) ? node : emptySet
  return member ? node : withoutSelf(node)
}

/**
 * `a` without the parts of common nodes that `restOfNode` drops (undefined drops the whole node); `a` itself if nothing
 * is dropped.
 */
function without(
  a: FieldSet,
  b: FieldSet,
  restOfNode: (left: FieldSet, right: FieldSet) => FieldSet | undefined,
): FieldSet {
  let changes: Record<string, FieldSet | undefined> | undefined
  for (const element in b) {
    const left = element === self ? undefined : a[element]
    if (left === undefined) continue
    const rest = restOfNode(left, b[element] ?? emptySet)
    if (rest !== left) (changes ??= {})[element] = rest
  }
  if (changes === undefined) return a
  const result: FieldSetBuilder = {}
  for (const element in a) {
    const node = Object.hasOwn(changes, element) ? changes[element] : a[element]
    if (node !== undefined) result[element] = node
  }
  return result
}

/** Whether every member of `a` is a member of `b`. */
export function isSubset(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  for (const element in a) {
    if (element === self) continue
    const [left = emptySet, right] = [a[element], b[element]]
    if (right === undefined || (isMember(left) && !isMember(right)) || !isSubset(left, right)) return false
  }
  return true
}

/** Calls `visit` for every member, each before its children, as upstream does: members first, then the nodes below. */
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
  return a === b || (isSubset(a, b) && isSubset(b, a))
}

/** The children of a node, without the node itself. */
export function withoutSelf(node: FieldSet): FieldSet {
  if (!Object.hasOwn(node, self)) return node
  const { [self]: _, ...children } = node
  return children
}
