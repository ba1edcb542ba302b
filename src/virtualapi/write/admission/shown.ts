// The request and its objects as a webhook or a policy gets them: in the form in which the request matched.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { AdmissionRequest } from './admission.ts'
import { ownForm, type ReviewedForm } from './reviewed-form.ts'

export interface Shown {
  readonly request: AdmissionRequest
  /** The request's own form, which reviews name in addition to the matched form. */
  readonly own: ReviewedForm
  readonly form: ReviewedForm
  readonly object: KubeObject | undefined
  readonly old: KubeObject | undefined
}

/** The objects for mutating webhooks and policies: a new object has no uid and no generated name yet. */
export async function shownForMutation(
  form: ReviewedForm,
  request: AdmissionRequest,
  object: KubeObject | undefined,
  old: KubeObject | undefined,
): Promise<Shown> {
  const own = ownForm(request)
  const show = async (one: KubeObject | undefined): Promise<KubeObject | undefined> => one && (await form.show(one))
  const shown = await show(object)
  const isNew = request.operation === 'CREATE' && request.kind === undefined
  return {
    request: isNew ? unnamed(request, object) : request,
    own,
    form,
    object: shown && isNew ? asNew(shown) : shown,
    old: await show(old),
  }
}

function asNew(object: KubeObject): KubeObject {
  const { uid: _uid, creationTimestamp: _created, name, ...rest } = object.metadata
  const metadata = name === undefined || rest.generateName ? rest : { name, ...rest }
  return { ...object, metadata }
}

function unnamed(request: AdmissionRequest, object: KubeObject | undefined): AdmissionRequest {
  return object?.metadata.generateName ? { ...request, name: '' } : request
}
