// The path of a walker in a document: steps are pushed and popped on the way, and turned into text only for a message.

/** Steps from the root: names of fields, indices of items. */
export type ValuePath = (string | number)[]

/** `spec.containers[0].name`; empty for the root. */
export function pathText(path: Readonly<ValuePath>, last?: string): string {
  let text = ''
  for (const step of path) text += typeof step === 'number' ? `[${String(step)}]` : text === '' ? step : `.${step}`
  if (last === undefined) return text
  return text === '' ? last : `${text}.${last}`
}
