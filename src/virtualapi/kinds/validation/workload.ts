// Validation that Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs share: selector and pod template.
import type { V1PodTemplateSpec } from '@kubernetes/client-node'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { annotations, labels } from './basic-rules.ts'
import { isEmptySelector, isValidSelector, labelSelector, selects, type LabelSelector } from './label-selector.ts'
import { matchingProfiles, podAnnotations } from './pod-annotations.ts'
import { podSpec, type PodSpec } from './pod-spec.ts'
import { fields, forbidden, given, required, type Rule } from './vocabulary.ts'

export type PodTemplate = Data<V1PodTemplateSpec>
type Selector = LabelSelector | null | undefined

/** A selector that must not be empty. `kind`: the name of the kind in upstream's message. */
export function selectorOf(kind: string): Rule<Selector> {
  return required((selector: LabelSelector, report) => {
    report.check(labelSelector, selector)
    if (isEmptySelector(selector)) report.invalid('', {}, `empty selector is invalid for ${kind}`)
  })
}

/** True if the selector is absent or can be converted to a matcher. */
export const isUsable = (selector: Selector): boolean => !selector || isValidSelector(selector)

const noSpec: PodSpec = { containers: [] }
const noEphemeral = given(forbidden('ephemeral containers not allowed in pod template'))

/** A pod template. As upstream, the paths of its metadata lack `metadata`. */
export const podTemplate: Rule<PodTemplate> = (template, report) => {
  const spec = template.spec ?? noSpec
  report.check(templateMeta, template)
  report.at('spec', podSpec, spec, undefined)
  report.at('spec', matchingProfiles, spec, template.metadata)
  report.at('spec.ephemeralContainers', noEphemeral, spec.ephemeralContainers)
}

/** The labels and annotations of a pod template. */
export const templateMeta: Rule<PodTemplate> = ({ metadata, spec = noSpec }, report) => {
  report.at('labels', labels, metadata?.labels)
  report.at('annotations', annotations, metadata?.annotations)
  report.at('annotations', podAnnotations, metadata?.annotations, spec)
}

/** A template whose labels the selector matches. */
export const selectedTemplate: Rule<PodTemplate, Selector> = ({ metadata }, report, selector) => {
  const own = metadata?.labels
  if (!selector || !selects(selector, own))
    report.invalid(
      'metadata.labels',
      (own as JsonValue | undefined) ?? null,
      '`selector` does not match template `labels`',
    )
}

/** A template of pods that must always restart. `kind`: the name of the kind in upstream's message. */
export function alwaysRunning(kind: string): Rule<PodTemplate> {
  const noDeadline = forbidden(`activeDeadlineSeconds in ${kind} is not Supported`)
  const spec = fields<PodSpec>({
    restartPolicy: (policy = '', report) => {
      if (policy !== 'Always') report.notSupported('', policy, ['Always'])
    },
    activeDeadlineSeconds: noDeadline,
  })
  return (template, report) => report.at('spec', spec, template.spec ?? noSpec)
}
