import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseFrontProxyConfig } from './front-proxy-from-host.ts'
import { createPki, createPkiMaterial } from './pki/index.ts'

describe("the host's ConfigMap on its front proxy", () => {
  let ca: string
  before(async () => {
    ca = createPki(await createPkiMaterial()).clientCa
  })
  const configMap = (data: object): KubeObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, data })
  const whole = () => ({
    'client-ca-file': 'the authority of host users',
    'requestheader-client-ca-file': ca,
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
  })

  it('is read without its client-ca-file', () => {
    expect(parseFrontProxyConfig(configMap(whole()))).to.deep.equal({
      ca,
      allowedNames: ['front-proxy-client'],
      usernameHeaders: ['X-Remote-User'],
      groupHeaders: ['X-Remote-Group'],
      extraPrefixes: ['X-Remote-Extra-'],
      uidHeaders: [],
    })
  })
  it('may name no front proxy', () => {
    expect(parseFrontProxyConfig(configMap({ 'client-ca-file': ca }))).to.equal(undefined)
    expect(parseFrontProxyConfig({ apiVersion: 'v1', kind: 'ConfigMap', metadata: {} })).to.equal(undefined)
  })
  for (const [title, change, message] of [
    ['no allowed name', { 'requestheader-allowed-names': '[]' }, 'requestheader-allowed-names is empty'],
    ['blank names', { 'requestheader-allowed-names': '[" "]' }, 'requestheader-allowed-names is empty'],
    ['names that are no list', { 'requestheader-allowed-names': '"front-proxy-client"' }, 'is not a list of strings'],
    ['no username header', { 'requestheader-username-headers': '[]' }, 'requestheader-username-headers is empty'],
    ['a CA that is none', { 'requestheader-client-ca-file': 'x' }, 'holds no certificate'],
  ] as const) {
    it(`is refused with ${title}`, () => {
      expect(() => parseFrontProxyConfig(configMap({ ...whole(), ...change }))).to.throw(message)
    })
  }
})
