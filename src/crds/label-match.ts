// Label selectors of our kinds, compiled once for each version of an object.
import { selectorFromObject, type LabelSelector, type LabelSelectorSource } from '#apimachinery/selector/index.ts'
import { cloneJson } from '#apimachinery/meta/index.ts'

/** A metav1.LabelSelector that nobody changes any more. */
export interface FixedSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values?: readonly string[]
  }[]
}

const compiled = new WeakMap<FixedSelector, LabelSelector>()

/** Whether labels match a selector. An absent or empty selector matches everything. */
export function matches(
  selector: FixedSelector | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  if (selector === undefined) return true
  let known = compiled.get(selector)
  if (known === undefined) {
    known = selectorFromObject(cloneJson(selector) as LabelSelectorSource)
    compiled.set(selector, known)
  }
  return known.matches(labels ?? {})
}
