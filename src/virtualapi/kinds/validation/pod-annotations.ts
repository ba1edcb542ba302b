// Validation of pod annotations that are older forms of fields and must not contradict these fields, and of a few other
// annotations.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import { relativePathInside } from './basic-rules.ts'
import { eachContainer } from './pod-os.ts'
import type { PodSpec } from './pod-spec.ts'
import { tolerations } from './scheduling.ts'
import { type Report, type Rule } from './vocabulary.ts'

type Annotations = Readonly<Record<string, string>>
type Tolerations = NonNullable<PodSpec['tolerations']>

export const mirrorAnnotation = 'kubernetes.io/config.mirror'
const tolerationsAnnotation = 'scheduler.alpha.kubernetes.io/tolerations'
const costAnnotation = 'controller.kubernetes.io/pod-deletion-cost'
export const seccompOfPod = 'seccomp.security.alpha.kubernetes.io/pod'
export const seccompOfContainer = 'container.seccomp.security.alpha.kubernetes.io/'
export const appArmorOfContainer = 'container.apparmor.security.beta.kubernetes.io/'

/** The annotations of the pod or pod template with this spec. */
export const podAnnotations: Rule<Annotations | undefined, PodSpec> = (annotations, report, spec) => {
  if (annotations === undefined) return
  const mirror = annotations[mirrorAnnotation]
  if (mirror !== undefined && !spec.nodeName)
    report.invalid(`[${mirrorAnnotation}]`, mirror, 'must set spec.nodeName if mirror pod annotation is set')
  const cost = annotations[costAnnotation]
  if (cost !== undefined && !isCost(cost)) report.invalid(`[${costAnnotation}]`, cost, 'must be a 32bit integer')
  checkTolerations(annotations[tolerationsAnnotation], report)
  checkSeccomp(annotations, report)
  checkAppArmor(annotations, report, spec)
}

function isCost(text: string): boolean {
  if (!/^(0|[1-9]\d{0,10}|-\d{1,20})$/.test(text)) return false
  return Number(text) >= -(2 ** 31) && Number(text) < 2 ** 31
}

function checkTolerations(text: string | undefined, report: Report): void {
  if (!text) return
  let list: unknown
  try {
    list = parseJsonText(text)
  } catch {
    report.invalid('', tolerationsAnnotation, 'unexpected end of JSON input')
  }
  if (Array.isArray(list) && list.every(isJsonObject))
    report.at(tolerationsAnnotation, tolerations, list as unknown as Tolerations)
}

function checkSeccomp(annotations: Annotations, report: Report): void {
  for (const [key, profile] of Object.entries(annotations)) {
    if (key !== seccompOfPod && !key.startsWith(seccompOfContainer)) continue
    if (['runtime/default', 'docker/default', 'unconfined'].includes(profile)) continue
    if (profile.startsWith('localhost/')) report.at(key, relativePathInside, profile.slice('localhost/'.length))
    else report.invalid(key, profile, 'must be a valid seccomp profile')
  }
}

function checkAppArmor(annotations: Annotations, report: Report, spec: PodSpec): void {
  let names: Set<string> | undefined
  for (const [key, profile] of Object.entries(annotations)) {
    if (!key.startsWith(appArmorOfContainer)) continue
    names ??= namesOf(spec)
    const name = key.slice(appArmorOfContainer.length)
    const known = ['', 'runtime/default', 'unconfined'].includes(profile) || profile.startsWith('localhost/')
    if (!names.has(name)) report.invalid(`[${key}]`, name, 'container not found')
    if (!known) report.invalid(`[${key}]`, profile, `invalid AppArmor profile name: ${JSON.stringify(profile)}`)
  }
}

function namesOf(spec: PodSpec): Set<string> {
  const names = new Set<string>()
  eachContainer(spec, ({ name }) => names.add(name))
  return names
}

interface Profile {
  readonly type: string
  readonly localhostProfile?: string
}

/** The AppArmor profile that an annotation stands for; undefined if it is not a known profile. */
export function profileOfAnnotation(annotation: string): Profile | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' }
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' }
  return annotation.startsWith('localhost/')
    ? { type: 'Localhost', localhostProfile: annotation.slice('localhost/'.length) }
    : undefined
}

/** Checks that the profiles are equal if a new pod or template sets a profile both in an annotation and in a field. */
export const matchingProfiles: Rule<PodSpec, ObjectMeta | undefined> = (spec, report, metadata) => {
  const annotations = metadata?.annotations
  if (annotations === undefined) return
  const ofPod = spec.securityContext
  report.at('securityContext.seccompProfile', matchingSeccomp, ofPod?.seccompProfile, annotations[seccompOfPod])
  eachContainer(spec, ({ name, securityContext: own }, place) => {
    const annotation = annotations[seccompOfContainer + name]
    report.at(`${place}.securityContext.seccompProfile`, matchingSeccomp, own?.seccompProfile, annotation)
  })
  if (spec.os?.name === 'windows') return
  eachContainer(spec, ({ name, securityContext: own }, place) => {
    const profile = own?.appArmorProfile ?? ofPod?.appArmorProfile
    const annotation = annotations[appArmorOfContainer + name]
    report.at(`${place}.securityContext.appArmorProfile`, matchingAppArmor, profile, annotation)
  })
}

function matching(what: 'seccomp' | 'apparmor'): Rule<Profile | undefined, string | undefined> {
  const defaults = what === 'seccomp' ? ['runtime/default', 'docker/default'] : ['runtime/default']
  return (field, report, annotation) => {
    if (annotation === undefined || field === undefined) return
    const { type, localhostProfile } = field

    const matches =
      (type === 'Unconfined' && annotation === 'unconfined') ||
      (type === 'RuntimeDefault' && defaults.includes(annotation)) ||
      (type === 'Localhost' && annotation.startsWith('localhost/'))
    if (!matches && ['Unconfined', 'RuntimeDefault', 'Localhost'].includes(type))
      report.forbidden('type', `${what} type in annotation and field must match`)
    else if (type === 'Localhost' && annotation.slice('localhost/'.length) !== localhostProfile)
      report.forbidden('localhostProfile', `${what} profile in annotation and field must match`)
  }
}
const matchingSeccomp = matching('seccomp')
const matchingAppArmor = matching('apparmor')
