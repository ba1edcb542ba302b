// Prints a LabelSelector as the string that list and watch accept.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

/** Requirements sorted by key, as upstream prints them. Empty for a selector that selects everything. */
export function selectorText({ matchLabels, matchExpressions }: JsonObject): string {
  const requirements: [string, string][] = []
  if (isJsonObject(matchLabels))
    for (const [key, value] of Object.entries(matchLabels)) requirements.push([key, `${key}=${text(value)}`])
  for (const expression of Array.isArray(matchExpressions) ? matchExpressions : []) {
    if (!isJsonObject(expression)) continue
    const key = text(expression['key'])
    requirements.push([key, expressionText(key, text(expression['operator']), expression['values'])])
  }
  return requirements
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, text]) => text)
    .join(',')
}

function expressionText(key: string, operator: string, values: JsonValue | undefined): string {
  const list = (Array.isArray(values) ? values.map(text) : []).sort().join(',')
  switch (operator) {
    case 'In':
      return `${key} in (${list})`
    case 'NotIn':
      return `${key} notin (${list})`
    case 'Exists':
      return key
    default:
      return `!${key}`
  }
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}
