import { expect } from 'chai'
import { fieldManagerOf } from './field-manager.ts'

describe('the field manager of a request', () => {
  for (const { title, parameter = null, userAgent, manager } of [
    { title: 'is the parameter', parameter: 'helm', userAgent: 'Go-http-client/2.0', manager: 'helm' },
    {
      title: 'is the program where there is no parameter',
      userAgent: 'kubectl/v1.34.3 (linux/amd64) kubernetes/000',
      manager: 'kubectl',
    },
    { title: 'is the program where the parameter is empty', parameter: '', userAgent: 'curl/8.5.0', manager: 'curl' },
    { title: 'is the whole User-Agent where it has no slash', userAgent: 'my program', manager: 'my program' },
    { title: 'is empty without a parameter and a User-Agent', userAgent: undefined, manager: '' },
    { title: 'leaves out characters that cannot be printed', userAgent: 'a\u0001b\tc\u00a0/1', manager: 'abc' },
    { title: 'ends after 128 bytes', userAgent: 'x'.repeat(200), manager: 'x'.repeat(128) },
    {
      title: 'ends before a character that would exceed 128 bytes',
      userAgent: `${'x'.repeat(127)}\u00e9y`,
      manager: 'x'.repeat(127),
    },
  ])
    it(title, () => expect(fieldManagerOf(parameter, userAgent)).to.equal(manager))
})
