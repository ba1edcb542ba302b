// Checks writes of CertificateSigningRequests: the user who approves or signs one needs the verb `approve` or `sign` on
// its signer, and no user may request the group system:masters.
import { isDeepStrictEqual } from 'node:util'
import { goQuote } from '#apimachinery/text/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import type { Authorizer } from '#virtualapi/auth/authz/index.ts'
import { parseSigningRequest } from '#virtualapi/kinds/certificates/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'

const group = 'certificates.k8s.io'
const clientSigner = 'kubernetes.io/kube-apiserver-client'
const mastersGroup = 'system:masters'

interface RequestSpec {
  readonly request: string
  readonly signerName: string
}

const specOf = (object: KubeObject): RequestSpec => object['spec'] as RequestSpec

/** kube-apiserver's plugins CertificateApproval, CertificateSigning and CertificateSubjectRestriction in one. */
export function certificateSigners(authorizer: Pick<Authorizer, 'authorize'>): AdmissionPlugin {
  return {
    name: 'CertificateSigners',
    validate(request, object, old) {
      const { info } = request.definition
      if (info.group !== group || info.resource !== 'certificatesigningrequests' || object === undefined)
        return undefined
      if (old !== undefined) return checkUpdate(authorizer, request, object, old)
      refuseMasters(request, object)
      return undefined
    },
  }
}

async function checkUpdate(
  authorizer: Pick<Authorizer, 'authorize'>,
  request: AdmissionRequest,
  object: KubeObject,
  old: KubeObject,
): Promise<void> {
  const { signerName } = specOf(old)
  const verb = verbFor(request.subresource, object, old)
  if (verb === undefined || (await maySign(authorizer, request, verb, signerName))) return
  throw refused(request, `user not permitted to ${verb} requests with signerName ${goQuote(signerName)}`)
}

function refused({ definition, name }: AdmissionRequest, why: string): Error {
  return forbidden(definition.info, name, why)
}

function verbFor(subresource: string, object: KubeObject, old: KubeObject): 'approve' | 'sign' | undefined {
  if (subresource === 'approval') return 'approve'
  return subresource === 'status' && !isDeepStrictEqual(object['status'], old['status']) ? 'sign' : undefined
}

/** True if the user has the verb on the signer, or on all signers of its domain (`DOMAIN/*`). */
async function maySign(
  authorizer: Pick<Authorizer, 'authorize'>,
  { context: { user, cluster, work }, signal }: AdmissionRequest,
  verb: string,
  signerName: string,
): Promise<boolean> {
  const target = { group, version: '*', resource: 'signers', subresource: '', namespace: '' }
  for (const name of [signerName, `${signerName.split('/')[0] ?? ''}/*`])
    if ((await authorizer.authorize(user, { verb, resource: { ...target, name } }, { cluster, work, signal })).allowed)
      return true
  return false
}

/** Throws 403 for a client certificate in system:masters, because RBAC could not revoke its rights. */
function refuseMasters(request: AdmissionRequest, object: KubeObject): void {
  const { request: pem, signerName } = specOf(object)
  if (signerName !== clientSigner) return
  const { organizations } = parseSigningRequest(Buffer.from(pem, 'base64').toString('latin1'))
  if (organizations.includes(mastersGroup))
    throw refused(request, `use of ${clientSigner} signer with ${mastersGroup} group is not allowed`)
}
