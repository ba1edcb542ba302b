// Compares two large documents and returns the places where they differ.
import { isRecord } from '#test/integration/json.ts'

/** One line per difference; empty when the documents are equal. */
export function differences(real: unknown, ours: unknown, path = ''): string[] {
  if (Array.isArray(real) && Array.isArray(ours) && real.length === ours.length)
    return real.flatMap((item, index) => differences(item, ours[index], `${path}/${index}`))
  if (isRecord(real) && isRecord(ours)) {
    const keys = [...new Set([...Object.keys(real), ...Object.keys(ours)])]
    return keys.flatMap((key) => {
      const place = `${path}/${key}`
      if (!(key in ours)) return [`${place}: kube-apiserver alone has it`]
      if (!(key in real)) return [`${place}: only ours has it`]
      return differences(real[key], ours[key], place)
    })
  }
  return Object.is(real, ours) ? [] : [`${path}: ${shown(real)} there, ${shown(ours)} here`]
}

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 200)
