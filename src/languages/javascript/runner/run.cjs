// Started as `node run.cjs PROGRAM`: runs the program as `node PROGRAM` would and, where node does not see by itself that
// it is an ES module (by default since 20.19 and, without a warning, 22.12), tells node. Leaves no trace in the program.
'use strict';
const Module = require('module');

const [major, minor] = process.versions.node.split('.').map(Number);
const detects = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19);

process.argv.splice(1, 1);
process.mainModule = undefined;
delete require.cache[__filename];

const takeBack = !detects && isModule(process.argv[1]) && declareModule(process.argv[1]);
// Not called from here, so that the program's stack traces hold nothing of this file.
process.nextTick(Module.runMain.bind(Module));
if (takeBack) process.nextTick(takeBack);

/**
 * A file called *.js has the type that the nearest package.json says, which node reads once, in runMain. So one that says
 * "module" is there until that is done: before anything of the program runs. Returns what removes it.
 */
function declareModule(program) {
  const fs = require('fs');
  const manifest = require('path').join(require('path').dirname(program), 'package.json');
  try {
    fs.writeFileSync(manifest, '{"type":"module"}', { flag: 'wx' }); // never over one that the program brings
    return () => fs.unlinkSync(manifest);
  } catch {
    return undefined; // then it runs as node alone would run it
  }
}

/** Whether the source can only be an ES module: it does not compile as CommonJS, for the reason that it is none. */
function isModule(program) {
  const text = require('fs').readFileSync(program, 'utf8').replace(/^\uFEFF/, '').replace(/^#!.*/, '');
  const error = syntaxErrorOf(Module.wrap(text));
  if (error === '') return false;
  const withAwait = syntaxErrorOf(`(async function () {${text}\n})`);
  return withAwait === '' || isOfModules(error) || isOfModules(withAwait);
}

function isOfModules(message) {
  return /import statement outside a module|Unexpected token 'export'|'import\.meta' outside a module/.test(message);
}

function syntaxErrorOf(text) {
  try {
    new (require('vm').Script)(text);
    return '';
  } catch (error) {
    return error.message;
  }
}
