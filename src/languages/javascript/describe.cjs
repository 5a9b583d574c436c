// Run once on the host by each node that could serve, with `-e`: says in one line of JSON what it is.
'use strict';
const fs = require('fs');
const path = require('path');

/** The folder that holds all of this node, or only that of its executable where it stands by itself. */
function place() {
  const folder = path.dirname(process.execPath);
  const prefix = path.dirname(folder);
  const isPrefix = path.basename(folder) === 'bin' && fs.existsSync(path.join(prefix, 'include', 'node', 'node.h'));
  return isPrefix ? prefix : folder;
}

/** "name version" of each package in a node_modules folder; scoped ones are one level deeper. */
function packagesIn(folder) {
  const names = (parent) => {
    try {
      return fs.readdirSync(parent).filter((name) => !name.startsWith('.'));
    } catch {
      return [];
    }
  };
  const all = names(folder).flatMap((name) =>
    name.startsWith('@') ? names(path.join(folder, name)).map((inner) => `${name}/${inner}`) : [name]);
  return all.flatMap((name) => {
    try {
      const { version } = JSON.parse(fs.readFileSync(path.join(folder, name, 'package.json'), 'utf8'));
      return version ? [`${name} ${version}`] : [];
    } catch {
      return [];
    }
  });
}

/** What require() finds without a node_modules folder of the program's own; the home folder is another one in a sandbox. */
function libraries() {
  const home = process.env.HOME;
  const folders = require('module').globalPaths.filter((folder) => !home || !folder.startsWith(home + path.sep));
  return [...new Set(folders.flatMap(packagesIn))].sort();
}

console.log(JSON.stringify({
  executable: process.execPath,
  version: process.versions.node,
  paths: [place()],
  libraries: libraries(),
  virtual: false,
}));
