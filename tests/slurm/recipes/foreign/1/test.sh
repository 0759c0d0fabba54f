#!/bin/sh
set -eu
for app in bokeh flask gradio mlflow shiny streamlit; do
    [ -x "/opt/apps/$app/bin/$app" ]
done
