"""The site of all documents of the repository and the C API: `./dev docs`.

SPDX-License-Identifier: Apache-2.0
"""
project = "dtrain"
copyright = "the dtrain authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_inline_tabs"]
html_theme = "furo"
smartquotes = False  # of what is code or an option
html_title = "dtrain"
root_doc = "index"
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
