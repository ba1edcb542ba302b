// The programs `kube-apiserver` and `etcd` of bin/envtest, for test suites that start a control plane of their own, such
// as envtest of controller-runtime.   main.js kube-apiserver|etcd FLAGS
import { makeProtoAPlainKey } from '#apimachinery/meta/index.ts'
import { messageOf } from '#cli/process/exit-error.ts'

// Objects have maps with any keys.
makeProtoAPlainKey()

const [program = '', ...words] = process.argv.slice(2)
try {
  if (program === 'etcd') await (await import('./etcd.ts')).run(words)
  else await (await import('./kube-apiserver.ts')).run(words)
  process.exitCode = 0
} catch (error) {
  console.error(`${program}: ${messageOf(error)}`)
  process.exitCode = 1
}
process.exit()
