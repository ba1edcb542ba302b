// The selector of a Service: the labels that its pods have.
import type { Labels } from './label-requirement.ts'

/** Whether a Service selects a pod with these labels. Without a selector, it selects none. */
export function serviceSelects(service: { readonly [field: string]: unknown }, labels: Labels = {}): boolean {
  const { selector } = (service['spec'] ?? {}) as { selector?: Labels }
  const wanted = Object.entries(selector ?? {})
  return wanted.length > 0 && wanted.every(([label, value]) => labels[label] === value)
}
