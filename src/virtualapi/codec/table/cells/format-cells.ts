// Formats of cells that several kinds share.
import { compareText, type JsonObject } from '#apimachinery/meta/index.ts'
import { objectAt, objectsAt, scalarText, textAt, textsAt, valueAt } from './read-fields.ts'
import { timeSince } from './human-duration.ts'

export function nameOf(object: JsonObject): string {
  return textAt(object, 'metadata', 'name')
}

export function ageOf(object: JsonObject, nowMs: number): string {
  return timeSince(valueAt(object, 'metadata', 'creationTimestamp'), nowMs)
}

export function isDeleting(object: JsonObject): boolean {
  return valueAt(object, 'metadata', 'deletionTimestamp') !== undefined
}

/** Labels as text, sorted, such as `a=1,b=2`; `<none>` for no labels. */
export function labelsText(labels: JsonObject): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${scalarText(value, '')}`)
  return pairs.length === 0 ? '<none>' : pairs.sort(compareText).join(',')
}

/** A LabelSelector as text, sorted by key; empty if it selects all objects or is absent. */
export function selectorText(selector: JsonObject): string {
  const parts = Object.entries(objectAt(selector, 'matchLabels')).map(([key, value]) => ({
    key,
    text: `${key}=${scalarText(value, '')}`,
  }))
  for (const expression of objectsAt(selector, 'matchExpressions')) {
    const key = textAt(expression, 'key')
    parts.push({ key, text: expressionText(key, expression) })
  }
  return parts
    .sort((a, b) => compareText(a.key, b.key))
    .map(({ text }) => text)
    .join(',')
}

/** The selector as text, or `<none>`. */
export function selectorOrNone(selector: JsonObject): string {
  return selectorText(selector) || '<none>'
}

function expressionText(key: string, expression: JsonObject): string {
  const values = textsAt(expression, 'values').sort(compareText).join(',')
  switch (textAt(expression, 'operator')) {
    case 'In':
      return `${key} in (${values})`
    case 'NotIn':
      return `${key} notin (${values})`
    case 'DoesNotExist':
      return `!${key}`
    default:
      return key
  }
}

/** Names and images of the containers of a pod spec, each joined. */
export function containerCells(podSpec: JsonObject): [names: string, images: string] {
  const containers = objectsAt(podSpec, 'containers')
  return [
    containers.map((container) => textAt(container, 'name')).join(','),
    containers.map((container) => textAt(container, 'image')).join(','),
  ]
}

/**
 * The first `most` items of a list as text, with the number of further items. `count`: the number of all items, if
 * `list` has only some of them.
 */
export function firstOf(list: readonly string[], most: number, { separator = ',', count = list.length } = {}): string {
  const shown = list.slice(0, most).join(separator)
  return count > most ? `${shown} + ${count - most} more...` : shown
}
