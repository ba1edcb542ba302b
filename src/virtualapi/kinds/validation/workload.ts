// What Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs share: a selector, and a template it selects.
import type { V1PodTemplateSpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '../../../apimachinery/field/index.ts'
import type { JsonValue } from '../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'
import type { Data } from '../../resources/typed/data.ts'
import { invalidInternal } from '../../resources/typed/internal-form.ts'
import { isEmptySelector, labelSelectorCauses, selects, type LabelSelector } from './label-selector.ts'
import { podAnnotationsCauses, profileMatchCauses } from './pod-annotations.ts'
import { podSpecCauses, type PodSpec } from './pod-spec.ts'
import { annotationsCauses, labels } from './values.ts'

export type PodTemplate = Data<V1PodTemplateSpec>

/** A selector that is there, valid and selects something. `kind`: as in upstream's message. */
export function selectorCauses(path: string, selector: LabelSelector | null | undefined, kind: string): StatusCause[] {
  if (!selector) return [fieldRequired(path)]
  const causes = labelSelectorCauses(path, selector)
  if (isEmptySelector(selector)) causes.push(fieldInvalid(path, {}, `empty selector is invalid for ${kind}`))
  return causes
}

/** True where upstream can make a matcher of it, which minds less than validation does. */
export function isUsable(selector: LabelSelector | null | undefined): boolean {
  return !selector || labelSelectorCauses('', selector).length === 0
}

/** Said once more of a selector whose parts are wrong. */
export function unusableCauses(
  path: string,
  selector: LabelSelector | null | undefined,
  detail = 'invalid label selector',
): StatusCause[] {
  return isUsable(selector) ? [] : [invalidInternal(path, 'v1.LabelSelector', selector, detail)]
}

const noSpec: PodSpec = { containers: [] }

/** The template: labels, annotations and spec of its pods. Upstream leaves `metadata` out of these paths. */
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

/** The labels and annotations of a template. */
export function templateMetaCauses(path: string, { metadata, spec }: PodTemplate): StatusCause[] {
  return [
    ...labels(`${path}.labels`, metadata?.labels),
    ...annotationsCauses(`${path}.annotations`, metadata?.annotations),
    ...podAnnotationsCauses(`${path}.annotations`, metadata?.annotations, spec ?? noSpec),
  ]
}

/** Said of a template that a selector does not select. */
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

/** The template of something that keeps pods running, and restarts them always. `kind`: as in upstream's message. */
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
