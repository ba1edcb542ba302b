// Validation that Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs share: selector and pod template.
import type { V1PodTemplateSpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { isEmptySelector, labelSelectorCauses, selects, type LabelSelector } from './label-selector.ts'
import { podAnnotationsCauses, profileMatchCauses } from './pod-annotations.ts'
import { podSpecCauses, type PodSpec } from './pod-spec.ts'
import { annotationsCauses, labels } from './values.ts'

export type PodTemplate = Data<V1PodTemplateSpec>

/** Validates a selector: it is required and must not be empty. `kind`: as in upstream's message. */
export function selectorCauses(path: string, selector: LabelSelector | null | undefined, kind: string): StatusCause[] {
  if (!selector) return [fieldRequired(path)]
  const causes = labelSelectorCauses(path, selector)
  if (isEmptySelector(selector)) causes.push(fieldInvalid(path, {}, `empty selector is invalid for ${kind}`))
  return causes
}

/** True if the selector is absent or can be converted to a matcher. */
export function isUsable(selector: LabelSelector | null | undefined): boolean {
  return !selector || labelSelectorCauses('', selector).length === 0
}

/** The additional error for a selector that cannot be converted to a matcher. */
export function unusableCauses(
  path: string,
  selector: LabelSelector | null | undefined,
  detail = 'invalid label selector',
): StatusCause[] {
  return isUsable(selector) ? [] : [invalidInternal(path, 'v1.LabelSelector', selector, detail)]
}

const noSpec: PodSpec = { containers: [] }

/** Validates the labels, annotations and spec of a pod template. As upstream, paths lack `metadata`. */
export function templateCauses(path: string, template: PodTemplate): StatusCause[] {
  const spec = template.spec ?? noSpec
  return [
    ...templateMetaCauses(path, template),
    ...podSpecCauses(`${path}.spec`, spec),
    ...profileMatchCauses(`${path}.spec`, template.metadata ?? {}, spec),
    ...(spec.ephemeralContainers?.length
      ? [fieldForbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template')]
      : []),
  ]
}

/** Validates the labels and annotations of a pod template. */
export function templateMetaCauses(path: string, { metadata, spec }: PodTemplate): StatusCause[] {
  return [
    ...labels(`${path}.labels`, metadata?.labels),
    ...annotationsCauses(`${path}.annotations`, metadata?.annotations),
    ...podAnnotationsCauses(`${path}.annotations`, metadata?.annotations, spec ?? noSpec),
  ]
}

/** The error for a template whose labels the selector does not match. */
export function unselectedCauses(
  path: string,
  template: PodTemplate,
  selector: LabelSelector | null | undefined,
): StatusCause[] {
  const own = template.metadata?.labels
  if (selector && selects(selector, own)) return []
  return [
    fieldInvalid(
      `${path}.metadata.labels`,
      (own as JsonValue | undefined) ?? null,
      '`selector` does not match template `labels`',
    ),
  ]
}

/** Validates the template of a workload whose pods must always restart. `kind`: as in upstream's message. */
export function alwaysRunningCauses(path: string, template: PodTemplate, kind: string): StatusCause[] {
  const { restartPolicy, activeDeadlineSeconds } = template.spec ?? noSpec
  return [
    ...(restartPolicy === 'Always'
      ? []
      : [fieldNotSupported(`${path}.spec.restartPolicy`, restartPolicy ?? '', ['Always'])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [fieldForbidden(`${path}.spec.activeDeadlineSeconds`, `activeDeadlineSeconds in ${kind} is not Supported`)]),
  ]
}
