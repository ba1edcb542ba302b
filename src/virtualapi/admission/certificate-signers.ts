// Who may approve and sign certificates: the verbs `approve` and `sign` on signers. And what nobody may ask for.
import { isDeepStrictEqual } from 'node:util'
import { goQuote } from '../../apimachinery/text/index.ts'
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { forbidden } from '../../apimachinery/status/index.ts'
import type { Authorizer } from '../authz/index.ts'
import { parseSigningRequest } from '../kinds/certificates/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'

const group = 'certificates.k8s.io'
const clientSigner = 'kubernetes.io/kube-apiserver-client'
const mastersGroup = 'system:masters'

interface RequestSpec {
  readonly request: string
  readonly signerName: string
}

const specOf = (object: KubeObject): RequestSpec => object['spec'] as RequestSpec

/** Like a real server's plugins CertificateApproval, CertificateSigning and CertificateSubjectRestriction. */
export function certificateSigners(authorizer: Pick<Authorizer, 'authorize'>): AdmissionPlugin {
  return {
    name: 'CertificateSigners',
    async validate(request, object, old) {
      const { info } = request.definition
      if (info.group !== group || info.resource !== 'certificatesigningrequests' || object === undefined) return
      if (old === undefined) {
        refuseMasters(request, object)
        return
      }
      const { signerName } = specOf(old)
      const verb = verbFor(request.subresource, object, old)
      if (verb === undefined || (await maySign(authorizer, request, verb, signerName))) return
      throw refused(request, `user not permitted to ${verb} requests with signerName ${goQuote(signerName)}`)
    },
  }
}

function refused({ definition, name }: AdmissionRequest, why: string): Error {
  return forbidden(definition.info, name, why)
}

function verbFor(subresource: string, object: KubeObject, old: KubeObject): 'approve' | 'sign' | undefined {
  if (subresource === 'approval') return 'approve'
  return subresource === 'status' && !isDeepStrictEqual(object['status'], old['status']) ? 'sign' : undefined
}

/** By the name of the signer, or by that of all of its domain. */
async function maySign(
  authorizer: Pick<Authorizer, 'authorize'>,
  { context: { user, cluster }, signal }: AdmissionRequest,
  verb: string,
  signerName: string,
): Promise<boolean> {
  const target = { group, version: '*', resource: 'signers', subresource: '', namespace: '' }
  for (const name of [signerName, `${signerName.split('/')[0] ?? ''}/*`])
    if ((await authorizer.authorize(user, { verb, resource: { ...target, name } }, cluster, signal)).allowed)
      return true
  return false
}

/** A certificate for the API server would make its owner more than RBAC can take away. */
function refuseMasters(request: AdmissionRequest, object: KubeObject): void {
  const { request: pem, signerName } = specOf(object)
  if (signerName !== clientSigner) return
  const { organizations } = parseSigningRequest(Buffer.from(pem, 'base64').toString('latin1'))
  if (organizations.includes(mastersGroup))
    throw refused(request, `use of ${clientSigner} signer with ${mastersGroup} group is not allowed`)
}
