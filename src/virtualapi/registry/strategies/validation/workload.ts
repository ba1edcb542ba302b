// What Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs share: a selector, and a template it selects.
import type { V1PodTemplateSpec } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired } from '../../../../apimachinery/field/index.ts'
import type { JsonValue } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { isEmptySelector, labelSelectorCauses, selects, type LabelSelector } from './label-selector.ts'
import { podSpecCauses } from './pod-spec.ts'
import { labels } from './values.ts'

export type PodTemplate = Data<V1PodTemplateSpec>

/** A selector that is there, valid and selects something. `kind`: as in upstream's message. */
export function selectorCauses(path: string, selector: LabelSelector | null | undefined, kind: string): StatusCause[] {
  if (!selector) return [fieldRequired(path)]
  const causes = labelSelectorCauses(path, selector)
  if (isEmptySelector(selector)) causes.push(fieldInvalid(path, {}, `empty selector is invalid for ${kind}`))
  return causes
}

/** Said once more of a selector whose parts are wrong. */
export function unusableCauses(path: string, selector: LabelSelector | null | undefined): StatusCause[] {
  if (!selector || labelSelectorCauses(path, selector).length === 0) return []
  return [fieldInvalid(path, selector, 'invalid label selector')]
}

/** The template: labels, annotations and spec of its pods. */
export function templateCauses(path: string, template: PodTemplate): StatusCause[] {
  return [
    ...labels(`${path}.metadata.labels`, template.metadata?.labels),
    ...podSpecCauses(`${path}.spec`, template.spec ?? noSpec),
  ]
}

const noSpec = { containers: [] }

/** The template of something that keeps pods running: selected, and restarted always. */
export function runningTemplateCauses(
  path: string,
  template: PodTemplate,
  selector: LabelSelector | null | undefined,
  { podSpec = true }: { podSpec?: boolean } = {},
): StatusCause[] {
  const causes: StatusCause[] = []
  const own = template.metadata?.labels
  const usable = !selector || (!isEmptySelector(selector) && labelSelectorCauses('', selector).length === 0)
  if (usable && !(selector && selects(selector, own)))
    causes.push(
      fieldInvalid(
        `${path}.metadata.labels`,
        (own as JsonValue | undefined) ?? null,
        '`selector` does not match template `labels`',
      ),
    )
  causes.push(
    ...(podSpec ? templateCauses(path, template) : labels(`${path}.metadata.labels`, template.metadata?.labels)),
  )
  const restartPolicy = template.spec?.restartPolicy
  const activeDeadlineSeconds = template.spec?.activeDeadlineSeconds
  if (restartPolicy !== 'Always')
    causes.push(fieldNotSupported(`${path}.spec.restartPolicy`, restartPolicy ?? '', ['Always']))
  if (activeDeadlineSeconds !== undefined)
    causes.push({
      reason: 'FieldValueForbidden',
      message: 'Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
      field: `${path}.spec.activeDeadlineSeconds`,
    })
  return causes
}
